"""Writes with OpenAI's Responses API. A failure is an error, never another writer's text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import openai
from openai import AsyncOpenAI

from recall.error.v1 import error_pb2
from services.answer.citations import Checked, Outcome, check
from services.answer.decisions import Decision, linked
from services.answer.evidence import Evidence
from services.answer.prompt import (
    Prompt,
    answer_prompt,
    batches,
    merge_prompt,
    rewrite_prompt,
    window_prompt,
)
from services.answer.replies import (
    DECISIONS_SCHEMA,
    BadReplyError,
    Written,
    read_decisions,
    read_reply,
    retry_after_seconds,
    retry_delay_seconds,
)
from services.answer.writer import DecisionsDraft, Draft
from services.corpus import Message
from services.runtime.errors import CallError, unavailable

ATTEMPTS = 2
ATTEMPT_SECONDS = 25.0
# Kept of the deadline so that the caller hears that no answer came, and can show the sources.
REPLY_SECONDS = 0.25
MIN_SECONDS = 0.05
# Characters of messages in one request: about 60,000 tokens, far inside the model's context and
# small enough to be written within one attempt.
WINDOW_CHARACTERS = 240_000
# Reasoning tokens count too.
ANSWER_TOKENS = 2_000
WINDOW_TOKENS = 4_000
DECISIONS_TOKENS = 8_000
MAX_SAFETY_IDENTIFIER = 128

REFUSED = "The language model refused to write."

Sleep = Callable[[float], Awaitable[None]]
Remaining = Callable[[], float]


@dataclass(frozen=True)
class _Request:
    """One request: a prompt, its size limit, who asks, and the form of the output."""

    prompt: Prompt
    max_output_tokens: int
    safety_identifier: str = ""
    schema: dict[str, Any] | None = None

    def arguments(self, model: str) -> dict[str, Any]:
        """Arguments of ``responses.create``. ``store`` is off: OpenAI keeps nothing."""
        text: dict[str, Any] = {"verbosity": "low"}
        if self.schema:
            text["format"] = {
                "type": "json_schema",
                "name": "decisions",
                "strict": True,
                "schema": self.schema,
            }
        arguments: dict[str, Any] = {
            "model": model,
            "instructions": self.prompt.instructions,
            "input": self.prompt.input,
            "store": False,
            "reasoning": {"effort": "low"},
            "text": text,
            "max_output_tokens": self.max_output_tokens,
        }
        if self.safety_identifier:
            arguments["safety_identifier"] = self.safety_identifier[:MAX_SAFETY_IDENTIFIER]
        return arguments


class OpenAIWriter:
    """``remaining`` gives the seconds left of the call in progress; no try outlives them."""

    name = "openai"

    def __init__(
        self, client: AsyncOpenAI, model: str, remaining: Remaining, sleep: Sleep = asyncio.sleep
    ) -> None:
        # Retries are ours: the client's own would try an exhausted quota again.
        self._client = client.with_options(max_retries=0)
        self._model = model
        self._remaining = remaining
        self._sleep = sleep

    async def answer(
        self, question: str, evidence: Sequence[Evidence], safety_identifier: str
    ) -> Draft:
        """An answer from evidence, best first; messages beyond the twelfth are never sent."""
        prompt = answer_prompt(question, [item.message for item in evidence])
        written = await self._write(_Request(prompt, ANSWER_TOKENS, safety_identifier))
        return _draft(written, prompt)

    async def catch_up(self, scope: str, messages: Sequence[Message]) -> Draft:
        """What happened in messages in time order."""
        return await self._window("catch_up", scope, messages)

    async def summary(self, scope: str, messages: Sequence[Message]) -> Draft:
        """A summary of messages in time order."""
        return await self._window("summary", scope, messages)

    async def decisions(self, scope: str, messages: Sequence[Message]) -> DecisionsDraft:
        """The decisions in messages in time order; a long window is read in parts, and what was
        decided in them once more, for what a decision replaced in another part."""
        given, found, model = tuple(messages), [], ""
        parts = batches(messages, WINDOW_CHARACTERS)
        for batch in parts:
            written = await self._write(_decisions_request(scope, batch))
            model = written.model
            if written.refused:
                return DecisionsDraft(given, refusal=REFUSED, model=model)
            found += _decisions(written)
        if len(parts) > 1:
            found = await self._linked(scope, found, messages)
        return DecisionsDraft(given, found, model=model)

    async def _linked(
        self, scope: str, found: list[Decision], messages: Sequence[Message]
    ) -> list[Decision]:
        stating = {decision.message_id for decision in found}
        decided = [message for message in messages if message.message_id in stating]
        if len(decided) < 2 or len(batches(decided, WINDOW_CHARACTERS)) > 1:
            return found
        written = await self._write(_decisions_request(scope, decided))
        return found if written.refused else linked(found, _decisions(written))

    async def rewrite(self, question: str, thread: Sequence[Message]) -> Draft:
        """A question that needs no thread."""
        prompt = rewrite_prompt(question, thread)
        return _draft(await self._write(_Request(prompt, ANSWER_TOKENS)), prompt)

    async def _window(self, name: str, scope: str, messages: Sequence[Message]) -> Draft:
        parts = batches(messages, WINDOW_CHARACTERS)
        drafts = [await self._part(name, scope, part) for part in parts]
        if len(drafts) == 1:
            return drafts[0]
        checked = [check(draft.text, draft.given) for draft in drafts]
        fault = _first_fault(drafts, checked)
        if fault is not None:
            return fault
        told = [one for one in checked if one.outcome is Outcome.ANSWERED]
        if not told:
            return drafts[0]
        cited = {message_id for one in told for message_id in one.cited_ids}
        given = [message for message in messages if message.message_id in cited]
        prompt = merge_prompt(name, scope, [one.text for one in told], given)
        return _draft(await self._write(_Request(prompt, WINDOW_TOKENS)), prompt)

    async def _part(self, name: str, scope: str, messages: Sequence[Message]) -> Draft:
        prompt = window_prompt(name, scope, messages)
        return _draft(await self._write(_Request(prompt, WINDOW_TOKENS)), prompt)

    async def _write(self, request: _Request) -> Written:
        arguments = request.arguments(self._model)
        for attempt in range(ATTEMPTS):
            try:
                return await self._try(arguments)
            except (openai.OpenAIError, BadReplyError, TimeoutError) as error:
                delay = _delay_seconds(error, attempt) if attempt + 1 < ATTEMPTS else None
                if delay is None or not self._has_time_for(delay):
                    raise _unavailable(error) from error
            await self._sleep(delay)
        raise AssertionError("the last attempt returns or raises")

    def _has_time_for(self, delay_seconds: float) -> bool:
        try:
            return self._remaining() > delay_seconds + REPLY_SECONDS + MIN_SECONDS
        except CallError:
            return False

    async def _try(self, arguments: dict[str, Any]) -> Written:
        seconds = min(ATTEMPT_SECONDS, max(MIN_SECONDS, self._remaining() - REPLY_SECONDS))
        # The client's timeout is for each read; a body that trickles in must end too.
        async with asyncio.timeout(seconds):
            reply = await self._client.responses.create(**arguments, timeout=seconds)
        return read_reply(reply.to_dict(warnings=False) if hasattr(reply, "to_dict") else reply)


def _draft(written: Written, prompt: Prompt) -> Draft:
    reason = REFUSED if written.refused else ""
    return Draft(written.text, prompt.given, reason, written.model)


def _decisions_request(scope: str, messages: Sequence[Message]) -> _Request:
    prompt = window_prompt("decisions", scope, messages)
    return _Request(prompt, DECISIONS_TOKENS, schema=DECISIONS_SCHEMA)


def _decisions(written: Written) -> list[Decision]:
    try:
        return list(read_decisions(written.text))
    except BadReplyError as error:
        raise _unavailable(error) from error


def _first_fault(drafts: Sequence[Draft], checked: Sequence[Checked]) -> Draft | None:
    """The first part that does not hold: leaving it out would hide a stretch of the window."""
    for draft, one in zip(drafts, checked, strict=True):
        if one.outcome is Outcome.UNVERIFIED:
            return Draft("", draft.given, draft.reason or one.reason, draft.model)
    return None


def _delay_seconds(error: Exception, attempt: int) -> float | None:
    if isinstance(error, BadReplyError) and not error.retriable:
        return None
    if isinstance(error, openai.APIStatusError):
        return retry_delay_seconds(
            attempt,
            status=error.status_code,
            code=error.code,
            retry_after_seconds=retry_after_seconds(error.response.headers),
        )
    return retry_delay_seconds(attempt, status=None, code=None, retry_after_seconds=None)


def _unavailable(error: Exception) -> CallError:
    """What the caller is told: the kind of failure, without a word of any message."""
    problem = "the call failed"
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        problem = "OPENAI_API_KEY was refused. Set another key, or unset it to write without OpenAI"
    elif isinstance(error, openai.APIStatusError):
        problem = f"status {error.status_code}" + (f" ({error.code})" if error.code else "")
    elif isinstance(error, openai.APITimeoutError | TimeoutError):
        problem = "no answer in time"
    elif isinstance(error, openai.APIConnectionError):
        problem = "no connection"
    elif isinstance(error, BadReplyError):
        problem = error.problem
    return unavailable(
        error_pb2.ERROR_REASON_WRITER_UNAVAILABLE,
        f"The answer could not be written with OpenAI: {problem}. The sources can still be read.",
    )
