"""Bodies of the Decisions API, computed as the published samples are. Pure.

Probabilities and confidence are rounded to two decimals; a score is the expectation over the
unrounded probabilities, so sums over the rounded ones may differ in the last digit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]
# What the model would score a message for a question: 0 to the highest level.
ScoreFunction = Callable[[str, Mapping[str, str]], float]

JEV = "typesafe/jev-1.13-20260917"
LUNA = "openai/gpt-6-luna-decisions-20261006"
CONTEXT_TOKENS = {"Jev": 32_000, "Luna": 1_050_000}
LUNA_QUESTIONS = 200
_GENERATION = "gen-dec-1796061600-"


@dataclass(frozen=True)
class Model:
    """What the API says about one model."""

    dated_id: str
    name: str
    provider: str
    dollars_per_token: float
    sends_legend: bool


MODELS = {
    "jev": Model(JEV, "Jev", "TypeSafe", 4.2e-8, True),
    "luna": Model(LUNA, "Luna", "OpenAI", 1e-7, False),
}
_ALIASES = {
    "typesafe/jev-1.13": "jev",
    JEV: "jev",
    "openai/gpt-6-luna-decisions": "luna",
    LUNA: "luna",
}


def model_named(model_id: object) -> str | None:
    """``jev`` or ``luna`` for an id that the API knows, dated or not."""
    return _ALIASES.get(model_id) if isinstance(model_id, str) else None


def shared_words(question: str, message: Mapping[str, str]) -> float:
    """A stand-in for judgement: the share of the question's words in the text, times three.

    It has nothing to do with how a model scores; it only makes different texts score differently.
    """
    asked = set(re.findall(r"\w{3,}", question.lower()))
    found = set(re.findall(r"\w{3,}", message["text"].lower()))
    return 3 * len(asked & found) / len(asked) if asked else 0.0


def reply_body(request: Body, model: Model, score: ScoreFunction, number: int) -> Body:
    """A faithful reply of status 200 to a valid request."""
    question, messages = request["state"]["question"], request["state"]["messages"]
    answers = {
        key: score_answer(score(question, messages[key]), asked["criteria"], model.sends_legend)
        if asked["type"] == "score"
        else {"type": "noul", "noul": 0.95}
        for key, asked in request["questions"].items()
    }
    tokens = input_tokens(request)
    return {
        "id": generation_id(number),
        "model": model.dated_id,
        "provider": model.provider,
        "answers": answers,
        "usage": {
            "input_tokens": tokens,
            "output_tokens": 5 * len(answers) if model.sends_legend else 0,
            "cost": round(tokens * model.dollars_per_token, 12),
        },
    }


def generation_id(number: int) -> str:
    """``gen-dec-<unix>-<20 letters or digits>``, counted."""
    return f"{_GENERATION}{number:020}"


def score_answer(score: float, levels: Sequence[str], legend: bool) -> Body:
    """The answer whose expectation is ``score``: its two neighbouring levels share it."""
    probabilities = spread(score, len(levels))
    count = len(levels)
    confidence = (max(probabilities) - 1 / count) / (1 - 1 / count)
    expected = sum(level * share for level, share in enumerate(probabilities))
    answer: Body = {"type": "score", "score": _rounded(expected)}
    if legend:
        answer["legend"] = {str(level): text for level, text in enumerate(levels)}
    answer["probabilities"] = {str(level): _rounded(p) for level, p in enumerate(probabilities)}
    return answer | {"confidence": _rounded(confidence)}


def spread(score: float, levels: int) -> list[float]:
    """Probabilities over the levels, all of it on the two next to ``score``."""
    below = min(int(score), levels - 1)
    shares = [0.0] * levels
    shares[below] = 1 - (score - below)
    if below + 1 < levels:
        shares[below + 1] = score - below
    return shares


def error_body(code: int, message: str, error_type: str, provider: str = "") -> Body:
    """The body of an error as OpenRouter words it."""
    metadata = {"error_type": error_type}
    if provider:
        metadata["provider_name"] = provider
    return {"error": {"code": code, "message": message, "metadata": metadata}}


def input_tokens(request: Body) -> int:
    """Tokens of the state and the questions, at four characters each."""
    text = json.dumps([request["state"], request["questions"]], ensure_ascii=False)
    return len(text) // 4


def invalid_request(request: object) -> Body | None:
    """The error for a body that the API does not take, or None for a good one."""
    if not isinstance(request, dict):
        return error_body(400, "The body is not a JSON object", "invalid_request")
    name = model_named(request.get("model"))
    if name is None:
        return error_body(400, "Not a decisions model", "invalid_request")
    questions = request.get("questions")
    if "state" not in request or not isinstance(questions, dict) or not questions:
        return error_body(400, "state and questions are required", "invalid_request")
    bad = [key for key, question in questions.items() if not _is_question(question)]
    if bad:
        return error_body(400, f"questions.{bad[0]} is malformed", "invalid_request")
    return _over_limit(request, name)


def _over_limit(request: Body, name: str) -> Body | None:
    model = MODELS[name]
    if name == "luna" and len(request["questions"]) > LUNA_QUESTIONS:
        return error_body(400, "At most 200 questions", "invalid_request", model.provider)
    if input_tokens(request) > CONTEXT_TOKENS[model.name]:
        message = "The state is longer than the model's context"
        return error_body(400, message, "context_length_exceeded", model.provider)
    return None


def _is_question(question: object) -> bool:
    if not isinstance(question, dict) or "instructions" not in question:
        return False
    criteria = question.get("criteria")
    if question.get("type") == "noul":
        return criteria is None or (
            isinstance(criteria, dict) and {"true", "false"} <= set(criteria)
        )
    if question.get("type") == "score":
        return isinstance(criteria, list) and 2 <= len(criteria) <= 10
    return question.get("type") == "choice" and isinstance(criteria, dict) and len(criteria) >= 2


def _rounded(value: float) -> float:
    """Two decimals, and whole numbers without a point, as JavaScript prints them."""
    rounded = round(value, 2)
    return int(rounded) if rounded == int(rounded) else rounded
