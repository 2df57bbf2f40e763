"""Stages that follow a script, behind real gRPC: for what a real stage does only on a bad day.

Each holds the messages or replies it is given; a test replaces a method's ``reply`` to make it
fail, hang or answer nonsense.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc

from recall.answer.v1 import answer_pb2, answer_pb2_grpc
from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from recall.rerank.v1 import rerank_pb2, rerank_pb2_grpc
from recall.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from services.corpus import content_sha256, instant, timestamp
from services.gateway.clients import STAGES, Stages
from services.runtime.callers import Callers
from services.runtime.client import Peer
from services.runtime.errors import not_found
from services.runtime.server import Listener, RunningServer, Servicers, serving

MONDAY = datetime(2026, 8, 3, 9, 0, tzinfo=UTC)
WORKSPACE = "beacon"
GENERATION = "g1"

Reply = Callable[[Any], Awaitable[Any]]


def message(
    number: int, text: str, channel: str = "ops", author: str = "Ana", root: int = 0
) -> corpus_pb2.Message:
    """Message ``number`` of a channel, posted that many minutes into the first Monday."""
    return corpus_pb2.Message(
        message_id=f"synthetic:{channel}:{number}",
        workspace_id=WORKSPACE,
        channel_id=channel,
        channel_name=channel,
        author_id=author.lower(),
        author_name=author,
        posted_at=timestamp(MONDAY + timedelta(minutes=number)),
        text=text,
        thread_root_id=f"synthetic:{channel}:{root or number}",
        content_sha256=content_sha256(text, author.lower(), None),
    )


def hit(found: corpus_pb2.Message, rank: int) -> corpus_pb2.Hit:
    """A hit at a position of both lists."""
    return corpus_pb2.Hit(
        message=found,
        dense_rank=rank,
        lexical_rank=rank,
        fused_score=2 / (rank + 10),
        verdict=corpus_pb2.VERDICT_UNVERIFIED,
        provenance=corpus_pb2.Provenance(generation_id=GENERATION),
        cosine=0.9 - rank / 100,
        term_coverage=0.5,
    )


@dataclass
class ScriptedRetrieve(retrieve_pb2_grpc.RetrieveServiceServicer):
    """Finds every stored message that the context may read, in stored order."""

    messages: list[corpus_pb2.Message]
    search_reply: Reply | None = None
    deleted: set[str] = field(default_factory=set)
    contexts: list[corpus_pb2.QueryContext] = field(default_factory=list)
    filters: list[corpus_pb2.Filter] = field(default_factory=list)
    # What happens right before the n-th ReadMessages is answered, from 1.
    before_read: dict[int, Callable[[], None]] = field(default_factory=dict)
    reads: int = 0
    neighbours: list[corpus_pb2.Hit] = field(default_factory=list)

    def readable(self, context: corpus_pb2.QueryContext) -> list[corpus_pb2.Message]:
        """What the context may read."""
        return [
            message
            for message in self.messages
            if message.workspace_id == context.workspace_id
            and message.channel_id in context.channel_ids
            and message.message_id not in self.deleted
        ]

    async def ResolvePin(self, request: Any, context: Any) -> retrieve_pb2.ResolvePinResponse:  # noqa: N802
        """The only generation."""
        pin = corpus_pb2.Pin(generation_id=GENERATION)
        return retrieve_pb2.ResolvePinResponse(pin=pin, embedder_fingerprint="f1")

    async def Search(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Every readable message, at most the limit."""
        self.contexts.append(request.context)
        self.filters.append(request.filter)
        if self.search_reply:
            return await self.search_reply(request)
        found = self.readable(request.context)[: request.limit or 12]
        response = retrieve_pb2.SearchResponse(
            pin=request.pin or corpus_pb2.Pin(generation_id=GENERATION),
            hits=[hit(message, rank) for rank, message in enumerate(found)],
            abstained=not found,
            reason="" if found else "No message that you can read matches.",
            question=request.question,
            filter=request.filter,
        )
        if request.explain:
            response.explanation.lexical_query = "scripted"
        return response

    async def ExpandGraph(self, request: Any, context: Any) -> retrieve_pb2.ExpandGraphResponse:  # noqa: N802
        """The neighbours of any document."""
        result = retrieve_pb2.SearchResponse(hits=self.neighbours)
        return retrieve_pb2.ExpandGraphResponse(result=result)

    async def ReadMessages(self, request: Any, context: Any) -> retrieve_pb2.ReadMessagesResponse:  # noqa: N802
        """Those of the ids that are readable now."""
        self.reads += 1
        self.before_read.get(self.reads, lambda: None)()
        readable = {message.message_id: message for message in self.readable(request.context)}
        found = [readable[wanted] for wanted in request.message_ids if wanted in readable]
        return retrieve_pb2.ReadMessagesResponse(messages=found)

    async def ReadThread(self, request: Any, context: Any) -> retrieve_pb2.ReadThreadResponse:  # noqa: N802
        """The readable messages with the same root."""
        readable = self.readable(request.context)
        roots = {m.thread_root_id for m in readable if m.message_id == request.message_id}
        if not roots:
            raise not_found("No such message.")
        thread = [m for m in readable if m.thread_root_id in roots]
        return retrieve_pb2.ReadThreadResponse(messages=thread)

    async def ReadTimeline(self, request: Any, context: Any) -> retrieve_pb2.ReadTimelineResponse:  # noqa: N802
        """A page, newest first; the token is the offset."""
        self.filters.append(request.filter)
        readable = sorted(
            self.readable(request.context), key=lambda m: m.posted_at.seconds, reverse=True
        )
        within = [m for m in readable if _within(m, request.filter)]
        offset = int(request.page_token or 0)
        end = offset + request.page_size
        return retrieve_pb2.ReadTimelineResponse(
            messages=within[offset:end],
            next_page_token=str(end) if end < len(within) else "",
            newest_at=readable[0].posted_at if readable else None,
        )


@dataclass
class ScriptedRerank(rerank_pb2_grpc.RerankServiceServicer):
    """Reverses the order, as Jev."""

    reply: Reply | None = None

    async def Rerank(self, request: Any, context: Any) -> Any:  # noqa: N802
        """The reversed order with falling scores."""
        if self.reply:
            return await self.reply(request)
        reversed_ids = [message.message_id for message in reversed(request.messages)]
        return rerank_pb2.RerankResponse(
            ranking=[
                rerank_pb2.RankedMessage(message_id=message_id, score=3.0 - rank / 10)
                for rank, message_id in enumerate(reversed_ids)
            ],
            tier=rerank_pb2.TIER_JEV,
            model="jev",
        )


@dataclass
class ScriptedAnswer(answer_pb2_grpc.AnswerServiceServicer):
    """Quotes the first message it is given and cites it."""

    reply: Reply | None = None
    requests: list[Any] = field(default_factory=list)
    rewriting: Callable[[str], str] | None = None
    rewrites: list[Any] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    async def WriteAnswer(self, request: Any, context: Any) -> answer_pb2.WriteAnswerResponse:  # noqa: N802
        """An answer from the best message."""
        return answer_pb2.WriteAnswerResponse(written=await self._write(request))

    async def WriteCatchUp(self, request: Any, context: Any) -> answer_pb2.WriteCatchUpResponse:  # noqa: N802
        """A catch-up that names the first message."""
        return answer_pb2.WriteCatchUpResponse(written=await self._write(request))

    async def WriteSummary(self, request: Any, context: Any) -> answer_pb2.WriteSummaryResponse:  # noqa: N802
        """A summary that names the first message."""
        return answer_pb2.WriteSummaryResponse(written=await self._write(request))

    async def WriteDecisions(self, request: Any, context: Any) -> answer_pb2.WriteDecisionsResponse:  # noqa: N802
        """Each of the first two messages as a decision; only the first one is cited."""
        written = await self._write(request)
        decisions = [
            answer_pb2.Decision(text=m.text, message_id=m.message_id) for m in request.messages[:2]
        ]
        return answer_pb2.WriteDecisionsResponse(written=written, decisions=decisions)

    async def RewriteQuestion(  # noqa: N802
        self, request: Any, context: Any
    ) -> answer_pb2.RewriteQuestionResponse:
        """As scripted; by default there is no model."""
        self.rewrites.append(request)
        if self.rewriting is None:
            return answer_pb2.RewriteQuestionResponse(question=request.question)
        question = self.rewriting(request.question)
        return answer_pb2.RewriteQuestionResponse(question=question, is_rewritten=True, model="m")

    async def _write(self, request: Any) -> answer_pb2.WrittenText:
        self.requests.append(request)
        self.begun.set()
        try:
            return await (self.reply or _quote_first)(request)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@dataclass
class ScriptedIngest(
    ingest_pb2_grpc.DirectoryServiceServicer, ingest_pb2_grpc.IngestServiceServicer
):
    """Workspaces and their channels."""

    workspaces: dict[str, list[ingest_pb2.Channel]]

    async def ListWorkspaces(self, request: Any, context: Any) -> ingest_pb2.ListWorkspacesResponse:  # noqa: N802
        """By id."""
        return ingest_pb2.ListWorkspacesResponse(
            workspaces=[
                ingest_pb2.Workspace(workspace_id=name, source=corpus_pb2.SOURCE_SYNTHETIC)
                for name in sorted(self.workspaces)
            ]
        )

    async def ListChannels(self, request: Any, context: Any) -> ingest_pb2.ListChannelsResponse:  # noqa: N802
        """Of one workspace."""
        return ingest_pb2.ListChannelsResponse(channels=self.workspaces[request.workspace_id])

    async def GetCoverage(self, request: Any, context: Any) -> ingest_pb2.GetCoverageResponse:  # noqa: N802
        """Ten messages and twenty chunks a channel."""
        channels = [
            ingest_pb2.ChannelCoverage(
                channel_id=channel.channel_id, messages=10, newest_at=timestamp(MONDAY)
            )
            for channel in self.workspaces[request.workspace_id]
            if channel.channel_id in request.channel_ids
        ]
        return ingest_pb2.GetCoverageResponse(
            channels=channels,
            generation_id=GENERATION,
            chunks=20 * len(channels),
            embedder="local",
        )


def channel(
    channel_id: str,
    kind: ingest_pb2.ChannelKind.ValueType = ingest_pb2.CHANNEL_KIND_PUBLIC,
    name: str = "",
    archived: bool = False,
) -> ingest_pb2.Channel:
    """A channel that is named like its id unless told otherwise."""
    return ingest_pb2.Channel(
        channel_id=channel_id, name=name or channel_id, kind=kind, is_archived=archived
    )


@dataclass
class Script:
    """All four stages of one test, on the messages and channels of a small workspace."""

    retrieve: ScriptedRetrieve
    rerank: ScriptedRerank = field(default_factory=ScriptedRerank)
    answer: ScriptedAnswer = field(default_factory=ScriptedAnswer)
    ingest: ScriptedIngest = field(
        # Only what the gateway calls is scripted.
        default_factory=lambda: ScriptedIngest(  # type: ignore[abstract]
            {WORKSPACE: [channel("ops"), channel("leads", ingest_pb2.CHANNEL_KIND_PRIVATE)]}
        )
    )

    def servicers(self, stage: str) -> Servicers:
        """How one stage is served."""
        return {
            "ingest": Servicers(self._register_ingest, ("recall.ingest.v1.DirectoryService",)),
            "retrieve": Servicers(
                lambda s: retrieve_pb2_grpc.add_RetrieveServiceServicer_to_server(self.retrieve, s),
                ("recall.retrieve.v1.RetrieveService",),
            ),
            "rerank": Servicers(
                lambda s: rerank_pb2_grpc.add_RerankServiceServicer_to_server(self.rerank, s),
                ("recall.rerank.v1.RerankService",),
            ),
            "answer": Servicers(
                lambda s: answer_pb2_grpc.add_AnswerServiceServicer_to_server(self.answer, s),
                ("recall.answer.v1.AnswerService",),
            ),
        }[stage]

    def _register_ingest(self, server: grpc.aio.Server) -> None:
        ingest_pb2_grpc.add_DirectoryServiceServicer_to_server(self.ingest, server)
        ingest_pb2_grpc.add_IngestServiceServicer_to_server(self.ingest, server)


@asynccontextmanager
async def served(
    script: Script, callers: Callers, absent: tuple[str, ...] = ()
) -> AsyncIterator[Stages]:
    """The script's stages on free ports, as the gateway reaches them.

    Nobody listens for the ``absent`` ones: their server was started and stopped.
    """
    async with AsyncExitStack() as stack:
        peers: dict[str, Peer] = {}
        started: dict[str, RunningServer] = {}
        for stage in STAGES:
            running = await stack.enter_async_context(
                serving(Listener("127.0.0.1", 0), callers, script.servicers(stage))
            )
            started[stage] = running
            target = f"127.0.0.1:{running.port}"
            peers[stage] = Peer(target, lambda: callers.token_of("gateway"))
        for stage in absent:
            await started[stage].stop(0)
        stages = Stages(**peers)
        stack.push_async_callback(stages.close)
        yield stages


async def hang(_: Any) -> Any:
    """A reply that never comes."""
    await asyncio.Event().wait()


def failing(error: Exception) -> Reply:
    """A reply that is an error."""

    async def fail(_: Any) -> Any:
        raise error

    return fail


def always(reply: Any) -> Reply:
    """The same reply to everything."""

    async def give(_: Any) -> Any:
        return reply

    return give


async def _quote_first(request: Any) -> answer_pb2.WrittenText:
    first = (
        request.evidence[0].message
        if isinstance(request, answer_pb2.WriteAnswerRequest)
        else request.messages[0]
    )
    return answer_pb2.WrittenText(
        outcome=corpus_pb2.OUTCOME_ANSWERED,
        text=f"{first.text} [{first.message_id}]",
        cited_message_ids=[first.message_id],
        writer="extractive",
    )


def _within(message: corpus_pb2.Message, narrowing: corpus_pb2.Filter) -> bool:
    posted = instant(message.posted_at)
    after = not narrowing.HasField("posted_after") or posted >= instant(narrowing.posted_after)
    before = not narrowing.HasField("posted_before") or posted < instant(narrowing.posted_before)
    return after and before and narrowing.in_channel in ("", message.channel_id)
