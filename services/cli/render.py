"""Replies as text for a person, at most 80 columns where the content allows it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.ingest.v1 import ingest_pb2, jobs_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.cli import as_json
from services.corpus import instant

WIDTH = 80
_TIERS = {"jev": "ordered by Jev", "luna": "ordered by Luna", "rrf": "in search order"}
_WRITERS = {"openai": "written by OpenAI", "extractive": "quoted from the messages"}
_SKIPPED = {"notice": "joins, topics and other notices", "no_text": "messages without text"}
_OUTCOMES = {
    "abstained": "No answer",
    "unverified": "Not shown: the citations could not be verified",
    "refused": "Refused",
    "sources_only": "No answer could be written. What was found, unverified:",
    "suppressed": "Withdrawn: the evidence changed",
}


def answer(final: gateway_pb2.Answer) -> str:
    """An answer with its sources, or the outcome and its reason."""
    outcome = as_json.outcome_name(final.outcome)
    parts = [_OUTCOMES[outcome]] if outcome in _OUTCOMES else []
    parts += [_wrapped(text) for text in (final.text, final.reason) if text]
    if final.citations:
        parts += ["Sources:", *map(source, final.citations)]
    parts += [source(each.message) for each in final.unverified_sources]
    parts.append(_footnote(final))
    return "\n\n".join(part for part in dict.fromkeys(parts) if part)


def source(message: corpus_pb2.Message) -> str:
    """One message with who, where and when, and its id."""
    posted = instant(message.posted_at).strftime("%Y-%m-%d %H:%M")
    head = f"[{message.message_id}]\n  #{message.channel_name} · {posted} · {message.author_name}"
    link = f"\n  {message.permalink}" if message.permalink else ""
    return head + link + "\n" + textwrap.indent(_wrapped(message.text, WIDTH - 4), "    ")


def search_result(reply: retrieve_pb2.SearchResponse) -> str:
    """Found messages with their ranks and verdicts."""
    parts = []
    if reply.abstained:
        parts.append(_wrapped(f"{'Abstained' if reply.hits else 'Nothing found'}. {reply.reason}"))
    parts += [
        f"{n:2}. {_ranks(hit)}\n    {verdict(hit)}\n{source(hit.message)}"
        for n, hit in _count(reply)
    ]
    return "\n\n".join(parts)


def verdict(hit: corpus_pb2.Hit) -> str:
    """What the trust gate thinks of a hit, such as "superseded by b.md (confidence 0.81)"."""
    words = as_json.verdict_name(hit.verdict)
    shown = "uncalibrated" if words == "unverified" else words.replace("_", " ")
    if hit.superseded_by:
        shown += f" by {hit.superseded_by}"
    if hit.supersedes:
        shown += f", replaces {hit.supersedes}"
    return f"{shown} (confidence {hit.confidence:.2f})" if hit.HasField("confidence") else shown


def explanation(reply: retrieve_pb2.Explanation) -> str:
    """Both arms' lists."""
    lines = [f"lexical query: {reply.lexical_query or '(only stop words)'}"]
    for name, candidates in (("dense", reply.dense), ("lexical", reply.lexical)):
        lines.append(f"{name} arm:")
        lines += [
            f"  {each.rank:2}  {each.score:.4f}  {each.chunk_kind:<10} {_joined(each.message_ids)}"
            for each in candidates
        ]
    return "\n".join(lines)


def trace(wire: gateway_pb2.Trace) -> str:
    """How an answer was found: arms, fused scores, reranker."""
    lines = [explanation(wire.explanation), "fused:"]
    lines += [f"  {_ranks(hit)}  {hit.message.message_id}" for hit in wire.hits]
    lines.append(f"reranked by {as_json.tier_name(wire.rerank.tier) or 'nothing'}:")
    lines += [
        f"  {each.score:.2f}  {each.message_id}" if each.HasField("score") else each.message_id
        for each in wire.rerank.ranking
    ]
    return "\n".join(lines)


def window(text: gateway_pb2.WindowText) -> str:
    """A catch-up, summary or list of decisions with its sources."""
    outcome = as_json.outcome_name(text.outcome)
    parts = [_OUTCOMES[outcome]] if outcome in _OUTCOMES else []
    parts += [_wrapped(each) for each in (text.text, text.reason) if each]
    if text.citations:
        parts += ["Sources:", *map(source, text.citations)]
    parts += [source(each) for each in text.unverified_sources]
    parts.append(f"({text.messages_read} messages read)")
    return "\n\n".join(part for part in dict.fromkeys(parts) if part)


def status(reply: gateway_pb2.GetStatusResponse) -> str:
    """Stages and workspaces."""
    stages = [
        (each.stage, "serving" if each.serving else "DOWN", each.detail) for each in reply.stages
    ]
    workspaces = [_workspace(each) for each in reply.workspaces]
    heads = ("workspace", "source", "messages", "channels", "embedded", "embedder", "newest")
    shown = table(heads, workspaces) if workspaces else "No workspace yet: `recall import PATH`."
    if not all(each.serving for each in reply.stages if each.stage == "ingest"):
        shown = "The workspaces are not known while ingest does not serve."
    return "\n\n".join((table(("stage", "state", ""), stages), shown))


def jobs(workspace: str, listed: Sequence[jobs_pb2.Job], is_cut: bool) -> str:
    """Jobs, one a line, each with its last error below."""
    if not listed:
        return f"{workspace}: no job waits, runs or is dead."
    heads = ("job", "kind", "state", "failed", "asked (UTC)")
    header, *lines = table(heads, [_job(each) for each in listed]).splitlines()
    parts = [header]
    for each, line in zip(listed, lines, strict=True):
        parts += [line, *_last_error(each)]
    if is_cut:
        parts.append("There are more; the newest are shown.")
    if any(each.state == jobs_pb2.JOB_STATE_DEAD for each in listed):
        parts.append("Retry a dead one, once its cause is mended: recall jobs retry JOB")
    return "\n".join(parts)


def _job(each: jobs_pb2.Job) -> tuple[str, ...]:
    return (
        each.job_id,
        each.kind,
        as_json.job_state_name(each.state),
        f"{each.attempts}/{each.max_attempts}",
        instant(each.created_at).strftime("%m-%d %H:%M"),
    )


def _last_error(each: jobs_pb2.Job) -> list[str]:
    if not each.last_error:
        return []
    again = ""
    if each.state == jobs_pb2.JOB_STATE_READY:
        again = f"Runs again at {instant(each.run_at):%H:%M:%S}. "
    return [textwrap.indent(_wrapped(again + each.last_error, WIDTH - 2), "  ")]


def purge(workspace: str, report: ingest_pb2.GetPurgeResponse) -> str:
    """What a purge deleted, by table."""
    what = workspace if report.scope == "workspace" else f"{report.scope} of {workspace}"
    seconds = (instant(report.finished_at) - instant(report.requested_at)).total_seconds()
    head = f"Purged {what} in {seconds:.1f} s."
    rows = [(name, str(count)) for name, count in sorted(report.deleted.items()) if count]
    return f"{head}\n{table(('rows of', 'deleted'), rows)}" if rows else f"{head} It was empty."


def import_report(report: as_json.Json) -> str:
    """What an import did, and what it left out and why; from ``as_json.import_report``."""
    kinds = ("imported", "unchanged", "updated", "deleted")
    counts = ", ".join(f"{report[kind]} {kind}" for kind in kinds)
    lines = [f"{report['workspace_id']}: {counts}, of {report['received']} records"]
    lines += [f"  skipped {n}: {_SKIPPED.get(k, k)}" for k, n in sorted(report["skipped"].items())]
    if report["empty_channels"]:
        lines.append(_wrapped(f"  no message in: {', '.join(report['empty_channels'])}"))
    if unknown := report["unknown_authors"]:
        lines.append(
            _wrapped(f"  {len(unknown)} authors without a name: {', '.join(unknown[:10])}")
        )
    lines += [_wrapped(f"  note: {note}") for note in report["notes"]]
    return "\n".join(lines)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    ]
    return "\n".join(lines)


def _workspace(each: gateway_pb2.WorkspaceStatus) -> tuple[str, ...]:
    newest = instant(each.newest_at).strftime("%Y-%m-%d") if each.HasField("newest_at") else "-"
    return (
        each.workspace_id,
        as_json.source_name(each.source),
        str(each.messages),
        str(each.channels),
        f"{each.chunks - each.chunks_without_vector}/{each.chunks}",
        each.embedder or "-",
        newest,
    )


def _ranks(hit: corpus_pb2.Hit) -> str:
    dense = str(hit.dense_rank) if hit.HasField("dense_rank") else "-"
    lexical = str(hit.lexical_rank) if hit.HasField("lexical_rank") else "-"
    return f"score {hit.fused_score:.3f}  dense {dense:>2}  lexical {lexical:>2}"


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names)


def _count(reply: retrieve_pb2.SearchResponse) -> Iterable[tuple[int, corpus_pb2.Hit]]:
    return enumerate(reply.hits, 1)


def _footnote(final: gateway_pb2.Answer) -> str:
    parts = [
        _TIERS.get(as_json.tier_name(final.rerank_tier), ""),
        _WRITERS.get(final.writer, ""),
        # What was never set up is no fault of this answer.
        *(note for note in final.degraded if not note.endswith(":not_configured")),
    ]
    shown = " · ".join(part for part in parts if part)
    return f"({shown})" if shown else ""


def _wrapped(text: str, width: int = WIDTH) -> str:
    lines = text.splitlines() or [""]
    return "\n".join(
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines
    )
