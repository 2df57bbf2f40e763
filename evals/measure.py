"""The run itself: search everything, ask what the plan says, rerank with the stand-in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evals.asking import EvaluationError, ask_all, search_all
from evals.confidence import Calibrated, by_conversation, calibrated, ungrouped
from evals.datasets import Dataset, Question
from evals.measured import Measured
from evals.signalled import read_signals
from evals.stand_in import reranked_all, stand_in_rerank
from recall.gateway.v1 import gateway_pb2
from services.cli.connection import Stack, connect

STATUS_SECONDS = 30.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What is measured. ``conversation_asks`` questions of each type are asked; ``own_sets`` are
    questions to Beacon that only the confidence is measured on."""

    beacon: Dataset
    conversations: Dataset | None
    conversation_asks: int
    own_sets: tuple[Question, ...] = ()

    @property
    def datasets(self) -> list[Dataset]:
        """Everything to import."""
        return [each for each in (self.beacon, self.conversations) if each is not None]


@dataclass(frozen=True)
class Outcome:
    """What was measured, and the embedder that made the vectors."""

    beacon: Measured
    conversations: Measured | None
    embedder: str
    beacon_confidence: Calibrated
    conversations_confidence: Calibrated | None

    @property
    def measured(self) -> list[Measured]:
        """Every data set."""
        return [each for each in (self.beacon, self.conversations) if each is not None]

    @property
    def leaked(self) -> bool:
        """Whether any reply held what its reader may not read."""
        return any(row.leaks for each in self.measured for row in each.replies)


async def measure(plan: Plan, environ: Mapping[str, str], say: Say) -> Outcome:
    """Ask everything of a running stack. Raises EvaluationError."""
    async with connect(environ) as stack:
        embedder = await _embedder(stack, plan.beacon)
        beacon = await _measure_beacon(stack, plan.beacon, environ, say)
        conversations = None
        if plan.conversations is not None:
            conversations = await _measure_conversations(
                stack, plan.conversations, plan.conversation_asks, say
            )
    say("reading the signals of every question")
    asked = [*plan.beacon.questions, *plan.own_sets]
    own = calibrated(await read_signals(environ, plan.beacon, asked), ungrouped)
    others = None
    if plan.conversations is not None:
        signalled = await read_signals(environ, plan.conversations, plan.conversations.questions)
        others = calibrated(signalled, by_conversation)
    return Outcome(beacon, conversations, embedder, own, others)


def stratified(questions: Sequence[Question], each: int) -> list[Question]:
    """The same ``each`` questions of every type in every run: those of the smallest id hashes."""
    kept: dict[str, int] = {}
    chosen = []
    for question in sorted(questions, key=_hash):
        kept[question.kind] = kept.get(question.kind, 0) + 1
        if kept[question.kind] <= each:
            chosen.append(question)
    return sorted(chosen, key=questions.index)


async def _measure_beacon(
    stack: Stack, dataset: Dataset, environ: Mapping[str, str], say: Say
) -> Measured:
    say(f"beacon: searching {len(dataset.questions)} questions")
    found = [row async for row in search_all(stack, dataset, dataset.questions)]
    say("beacon: asking them")
    asked = [row async for row in ask_all(stack, dataset, dataset.questions)]
    say("beacon: reranking with the stand-in")
    async with stand_in_rerank(environ) as rerank:
        ordered = reranked_all(stack, rerank, dataset, dataset.with_evidence)
        reranked = [row async for row in ordered]
    return Measured(dataset, tuple(found), tuple(asked), tuple(reranked))


async def _measure_conversations(stack: Stack, dataset: Dataset, each: int, say: Say) -> Measured:
    say(f"{dataset.workspace}: searching {len(dataset.questions)} questions")
    found = [row async for row in search_all(stack, dataset, dataset.questions)]
    sample = stratified(dataset.questions, each)
    say(f"{dataset.workspace}: asking a sample of {len(sample)}")
    asked = [row async for row in ask_all(stack, dataset, sample)]
    return Measured(dataset, tuple(found), tuple(asked))


async def _embedder(stack: Stack, dataset: Dataset) -> str:
    status = await stack.gateway.GetStatus(gateway_pb2.GetStatusRequest(), timeout=STATUS_SECONDS)
    for workspace in status.workspaces:
        if workspace.workspace_id == dataset.workspace:
            return workspace.embedder
    raise EvaluationError(f"The stack does not show the workspace {dataset.workspace}.")


def _hash(question: Question) -> str:
    return hashlib.sha256(question.question_id.encode()).hexdigest()
