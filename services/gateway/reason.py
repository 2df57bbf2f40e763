"""Reason: evidence leads to further evidence, all of one generation, all trusted, then one answer.

Every step is a strict search with the first step's pin, so a promotion in between changes nothing.
The evidence is read again at the end, and the text's citations must be among it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.ask import EVIDENCE_LIMIT, PIN_SECONDS, SEARCH_SECONDS, Question, write
from services.gateway.checking import ABSTAINED_TEXT, check, suppressed, unwritten
from services.gateway.clients import Stages, reach
from services.gateway.deadline import Deadline
from services.gateway.ranking import Ranked
from services.gateway.reason_trail import Budget, Lead, Trail, trusted
from services.gateway.reread import still_unchanged
from services.gateway.trust import REFUSED_TEXT
from services.runtime.errors import CallError

# The searches may take this part of the time; the rest is for writing and checking.
SEARCH_PART = 0.6
UNCLEAR_TEXT = "What do you want to know? Ask in a few words."
OVER = "The budget of time is over. Ask again with more."
UNCLEAR = "The question holds no word to search for."

Event = gateway_pb2.ReasonStep | gateway_pb2.ReasonResult

_OUTCOMES = {
    corpus_pb2.OUTCOME_ANSWERED: gateway_pb2.REASON_OUTCOME_ANSWERED,
    corpus_pb2.OUTCOME_ABSTAINED: gateway_pb2.REASON_OUTCOME_ABSTAINED,
}


@dataclass
class _Run:
    """One reasoning under way. ``ends_at`` is when its budget of time is over, on the clock of
    ``deadline``, which leaves time to read the evidence again."""

    question: Question
    trail: Trail
    stages: Stages
    deadline: Deadline
    began: float
    pin: corpus_pb2.Pin
    expand_graph: bool
    calibration_id: str = ""
    reason: str = ""

    @property
    def clock(self) -> Callable[[], float]:
        return self.deadline.clock

    @property
    def ends_at(self) -> float:
        return self.began + self.trail.budget.milliseconds / 1000


async def reason(
    question: Question,
    budget: Budget,
    stages: Stages,
    deadline: Deadline,
    expand_graph: bool = False,
) -> AsyncGenerator[Event, None]:
    """Steps, then exactly one result. Raises CallError when retrieve fails: that is no result."""
    began = deadline.clock()
    if not any(letter.isalnum() for letter in question.text):
        yield gateway_pb2.ReasonResult(
            outcome=gateway_pb2.REASON_OUTCOME_NEEDS_CLARIFICATION,
            text=UNCLEAR_TEXT,
            reason=UNCLEAR,
        )
        return
    pin = await _pin(question, stages, deadline)
    run = _Run(question, Trail(question.text, budget), stages, deadline, began, pin, expand_graph)
    search_until = began + (run.ends_at - began) * SEARCH_PART
    try:
        while (lead := run.trail.next_lead()) is not None:
            yield await _step(run, lead)
            if run.trail.is_unfinished and run.clock() >= search_until:
                run.trail.exhausted = "milliseconds"
                break
    except CallError as error:
        if not error.is_refusal:
            raise
        yield _refused(error, run)
        return
    yield await _answered(run)


async def _pin(question: Question, stages: Stages, deadline: Deadline) -> corpus_pb2.Pin:
    request = retrieve_pb2.ResolvePinRequest(context=question.context)
    seconds = deadline.share(PIN_SECONDS)
    return (await reach("retrieve", stages.retriever.ResolvePin, request, seconds)).pin


async def _step(run: _Run, lead: Lead) -> gateway_pb2.ReasonStep:
    """One trusted search; what qualified becomes evidence."""
    request = retrieve_pb2.SearchRequest(
        context=run.question.context,
        question=lead.words,
        filter=run.question.narrowing,
        pin=run.pin,
        limit=EVIDENCE_LIMIT,
        trust_mode=corpus_pb2.TRUST_MODE_STRICT,
        valid_at=run.question.trust.valid_at,
        known_as_of=run.question.trust.known_as_of,
    )
    seconds = run.deadline.share(SEARCH_SECONDS)
    found = await reach("retrieve", run.stages.retriever.Search, request, seconds)
    if not lead.message_id:
        run.calibration_id, run.reason = found.calibration_id, found.reason
    hits = trusted(found.hits)
    if run.expand_graph and hits:
        hits += await _neighbours(run, request, hits)
    return gateway_pb2.ReasonStep(
        step=run.trail.steps,
        hop=lead.hop,
        led_by_message_id=lead.message_id,
        ok_hits=len(hits),
        new_evidence=run.trail.follow(lead, hits),
    )


async def _neighbours(
    run: _Run, request: retrieve_pb2.SearchRequest, hits: Sequence[corpus_pb2.Hit]
) -> list[corpus_pb2.Hit]:
    """Trusted documents one authored relation away from trusted hits."""
    uris = dict.fromkeys(hit.provenance.source_uri for hit in hits)
    expansion = retrieve_pb2.ExpandGraphRequest(search=request, source_uris=uris)
    seconds = run.deadline.share(SEARCH_SECONDS)
    reply = await reach("retrieve", run.stages.retriever.ExpandGraph, expansion, seconds)
    return trusted(reply.result.hits)


async def _answered(run: _Run) -> gateway_pb2.ReasonResult:
    """Write from the evidence, read it again, check what was written."""
    evidence = run.trail.evidence
    if not evidence:
        result = _result(gateway_pb2.REASON_OUTCOME_ABSTAINED, run)
        result.text, result.reason = ABSTAINED_TEXT, run.reason
        return result
    ranked = Ranked(tuple(evidence[:EVIDENCE_LIMIT]))
    written = await _written(run, ranked)
    messages = [hit.message for hit in evidence]
    kept = await still_unchanged(messages, run.question.context, run.stages, run.deadline)
    checked = unwritten(written) if isinstance(written, str) else check(written, ranked.messages())
    if any(message.message_id not in kept for message in checked.citations):
        checked = suppressed()
    outcome = _OUTCOMES.get(checked.outcome, gateway_pb2.REASON_OUTCOME_NO_ANSWER)
    result = _result(outcome, run)
    result.text, result.reason = checked.text, checked.reason
    result.citations.extend(checked.citations)
    result.evidence.extend(hit for hit in evidence if hit.message.message_id in kept)
    return result


async def _written(run: _Run, ranked: Ranked) -> answer_pb2.WrittenText | str:
    """The text, or why there is none; the budget of time ends here."""
    if run.clock() >= run.ends_at:
        run.trail.exhausted = "milliseconds"
        return OVER
    until = Deadline(run.clock, min(run.ends_at, run.deadline.ends_at))
    return await write(run.question, run.question.text, ranked, run.stages, until)


def _refused(error: CallError, run: _Run) -> gateway_pb2.ReasonResult:
    result = _result(gateway_pb2.REASON_OUTCOME_ABSTAINED, run)
    result.text, result.reason, result.refusal = REFUSED_TEXT, error.message, error.reason_name
    return result


def _result(outcome: gateway_pb2.ReasonOutcome.ValueType, run: _Run) -> gateway_pb2.ReasonResult:
    trail = run.trail
    return gateway_pb2.ReasonResult(
        outcome=outcome,
        generation_id=run.pin.generation_id,
        calibration_id=run.calibration_id,
        spent=gateway_pb2.ReasonBudget(
            steps=trail.steps,
            hops=trail.hops,
            evidence_tokens=trail.tokens,
            milliseconds=round((run.clock() - run.began) * 1000),
        ),
        exhausted=trail.exhausted,
    )
