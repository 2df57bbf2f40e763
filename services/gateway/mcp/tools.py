"""The tools: each translates its arguments, calls what gRPC callers use, and translates back."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from google.protobuf.timestamp_pb2 import Timestamp
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import admin_pb2, gateway_pb2
from recall.ingest.v1 import ledger_pb2
from services.corpus import timestamp
from services.gateway.ask import ASK_SECONDS, SEARCH_SECONDS, Question, ask
from services.gateway.clients import Stages
from services.gateway.context import query_context
from services.gateway.deadline import Deadline, deadline_in
from services.gateway.directory import Directory
from services.gateway.facts import FACT_SECONDS, apply_fact, issue_cards, list_facts
from services.gateway.ingest_files import INGEST_SECONDS, Files, ingest_files
from services.gateway.mcp import results
from services.gateway.search_only import search_only
from services.gateway.status import get_status
from services.gateway.trust import Trust
from services.runtime.call import Call
from services.runtime.callers import Caller, require_channels, require_workspace, require_write
from services.runtime.errors import CallError, invalid
from services.runtime.interceptors import call_in_progress

# Where documents are unless told otherwise.
DOCUMENTS = "documents"
# Where the door leaves who comes, in the request's scope.
CALLER_KEY = "recall.caller"

Json = dict[str, Any]

Workspace = Annotated[str, Field(description="Workspace id; empty for the only readable one.")]
Channels = Annotated[
    list[str] | None,
    Field(description="Channels or collections to read, ids or names; none for all public ones."),
]
TrustWord = Annotated[
    Literal["strict", "relaxed"],
    Field(description="strict refuses what no certified calibration judges; relaxed marks it."),
]
Day = Annotated[str, Field(description="A date (YYYY-MM-DD) or an ISO instant, UTC; empty: now.")]
KnownAsOf = Annotated[
    str, Field(description="Only what was written by then counts: a date or instant; empty: all.")
]

_MODES = {
    "strict": corpus_pb2.TRUST_MODE_STRICT,
    "relaxed": corpus_pb2.TRUST_MODE_RELAXED,
}


@dataclass(frozen=True)
class Tools:
    """The tools over the stages. Names of the methods are the tools' without ``recall_``."""

    stages: Stages
    directory: Directory

    async def search(
        self,
        query: Annotated[
            str, Field(description="What to look for; in: from: after: before: work.")
        ],
        ctx: Context[Any, Any],
        workspace: Workspace = "",
        channels: Channels = None,
        limit: Annotated[int, Field(ge=1, le=50)] = 12,
        trust: TrustWord = "strict",
        valid_at: Day = "",
        known_as_of: KnownAsOf = "",
        rerank: bool = False,
    ) -> Json:
        """Find messages or documents, each with verdict, confidence and provenance.

        The outcome is "refused" (nothing was searched), "abstained" (nothing qualified) or
        "answered"; reason says why. Only hits with the verdict "ok" may be relied on. Cards of
        trusted documents that declare facts are in evidence_cards.
        """
        with _served(ctx, SEARCH_SECONDS + FACT_SECONDS) as (caller, deadline):
            request = gateway_pb2.SearchRequest(
                question=query,
                limit=limit,
                trust_mode=_MODES[trust],
                valid_at=_stamp("valid_at", valid_at),
                known_as_of=_stamp("known_as_of", known_as_of),
                rerank=rerank,
            )
            context = await self._context(caller, workspace, channels)
            try:
                found = await search_only(request, context, self.stages, deadline)
            except CallError as error:
                if not error.is_refusal:
                    raise
                return results.refused(error)
            cards = await issue_cards(found, context, self.stages, deadline)
            return results.search_result(found, cards)

    async def ask(
        self,
        question: Annotated[str, Field(description="The question; in: from: after: before: work.")],
        ctx: Context[Any, Any],
        workspace: Workspace = "",
        channels: Channels = None,
        trust: TrustWord = "strict",
        valid_at: Day = "",
        known_as_of: KnownAsOf = "",
    ) -> Json:
        """Answer a question with checked citations, or say why not.

        The outcome is "refused" (nothing was searched), "abstained" (nothing qualified, or the
        evidence does not answer) or "answered"; "sources_only", "unverified" and "suppressed" tell
        that a text could not be written, checked or kept. reason says why.
        """
        with _served(ctx, ASK_SECONDS) as (caller, deadline):
            if not question.strip():
                raise invalid("question", "must not be empty. Ask in a few words.")
            asked = Question(
                text=question,
                context=await self._context(caller, workspace, channels),
                narrowing=corpus_pb2.Filter(),
                ask_id=str(uuid.uuid4()),
                asker=caller.hashed,
                trust=Trust(
                    _MODES[trust],
                    _stamp("valid_at", valid_at),
                    _stamp("known_as_of", known_as_of),
                ),
            )
            events = [event async for event in ask(asked, self.stages, deadline)]
            answer = events[-1]
            assert isinstance(answer, gateway_pb2.Answer)
            return results.answer_result(answer)

    async def ingest(
        self,
        collection: Annotated[str, Field(description="Name of the collection to change.")],
        files: Annotated[
            dict[str, str], Field(description="Text of new and changed documents by path.")
        ],
        ctx: Context[Any, Any],
        remove: Annotated[
            list[str] | None, Field(description="Paths of documents to leave out from now on.")
        ] = None,
        workspace: Annotated[str, Field(description="Workspace of documents.")] = DOCUMENTS,
    ) -> Json:
        """Change documents of a collection; what is not named stays as it is.

        A new index is built, checked and, if the collection was calibrated, certified again by
        replaying its labels. state is "active" when it serves now; "ready" when it may not yet,
        and reason says why: the old one serves on. problems are for the documents' authors.
        """
        with _served(ctx, INGEST_SECONDS) as (caller, deadline):
            require_write(caller)
            require_workspace(caller, workspace)
            require_channels(caller, [collection])
            changes = Files(
                workspace_id=workspace,
                collection=collection,
                contents={path: text.encode("utf-8") for path, text in files.items()},
                removed=remove or (),
                actor=caller.name,
            )
            return results.ingested(await ingest_files(changes, self.stages, deadline))

    async def apply_fact(
        self,
        namespace: str,
        subject: str,
        predicate: str,
        object: str,
        evidence_card_ids: Annotated[list[str], Field(description="Cards of recall_search.")],
        request_id: Annotated[
            str, Field(description="Chosen by you; the same again gives the same decision.")
        ],
        ctx: Context[Any, Any],
        context: str = "",
        valid_from: str = "",
        valid_until: str = "",
        workspace: Workspace = "",
        channels: Channels = None,
    ) -> Json:
        """Record one fact in the ledger, backed by evidence cards that declare this very fact.

        decision is APPLIED or DUPLICATE, or the reason why not; it never changes afterwards.
        """
        with _served(ctx, FACT_SECONDS) as (caller, deadline):
            require_write(caller)
            request = admin_pb2.ApplyFactRequest(
                fact=ledger_pb2.Fact(
                    namespace=namespace,
                    subject=subject,
                    predicate=predicate,
                    object=object,
                    context=context,
                    valid_from=valid_from,
                    valid_until=valid_until,
                ),
                card_ids=evidence_card_ids,
                request_id=request_id,
            )
            readable = await self._context(caller, workspace, channels)
            decided = await apply_fact(request, readable, caller.name, self.stages, deadline)
            return results.decision_result(decided)

    async def current_facts(
        self,
        ctx: Context[Any, Any],
        as_of: Day = "",
        known_as_of: KnownAsOf = "",
        namespace: str = "",
        subject: str = "",
        workspace: Workspace = "",
        channels: Channels = None,
    ) -> Json:
        """List the recorded facts that held at an instant, as known at an instant."""
        with _served(ctx, FACT_SECONDS) as (caller, deadline):
            request = admin_pb2.ListFactsRequest(
                valid_at=_stamp("as_of", as_of),
                known_as_of=_stamp("known_as_of", known_as_of),
                namespace=namespace,
                subject=subject,
            )
            readable = await self._context(caller, workspace, channels)
            facts = await list_facts(request, readable, self.stages, deadline)
            return {"facts": [results.ledger_fact(fact) for fact in facts]}

    async def status(self, ctx: Context[Any, Any]) -> Json:
        """Tell which stages serve, and which workspaces this token may read."""
        with _served(ctx, SEARCH_SECONDS) as (caller, _):
            return results.status_result(await get_status(self.stages, self.directory, caller))

    async def _context(
        self, caller: Caller, workspace: str, channels: list[str] | None
    ) -> corpus_pb2.QueryContext:
        reader = gateway_pb2.Reader(
            workspace_id=workspace,
            channel_ids=channels or (),
            no_channels=channels is not None and not channels,
        )
        return await query_context(reader, caller, self.directory)


@contextmanager
def _served(ctx: Context[Any, Any], seconds: float) -> Iterator[tuple[Caller, Deadline]]:
    """The caller of the tool's request and its deadline. A failed call is a ToolError."""
    request = ctx.request_context.request
    assert request is not None, "the door serves requests only"
    caller: Caller = request.scope[CALLER_KEY]
    deadline = deadline_in(time.monotonic, seconds)
    call = Call(str(uuid.uuid4()), caller, time.monotonic() + seconds)
    try:
        with call_in_progress(call):
            yield caller, deadline
    except CallError as error:
        raise ToolError(f"{error.reason_name}: {error.message}") from None


def _stamp(name: str, value: str) -> Timestamp | None:
    if not value:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return timestamp(moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC))
    except (ValueError, OverflowError):
        raise invalid(name, "must be a date such as 2026-08-03, or an ISO instant") from None
