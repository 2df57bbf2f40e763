"""What follows when Slack gives no page."""

from __future__ import annotations

from typing import ClassVar, Protocol, TypeVar

from services.ingest.history_pages import shown_ts
from services.ingest.history_retry import Retry, retry_of
from services.ingest.history_run import Rows, Run
from services.ingest.slack_history import Page, Refusal, Remedy


class Reading(Protocol):
    """A channel or thread that was to be read."""

    @property
    def channel_id(self) -> str: ...
    @property
    def cursor(self) -> str: ...
    @property
    def attempts(self) -> int: ...


Due = TypeVar("Due", bound=Reading, contravariant=True)


class Keeper(Protocol[Due]):
    """The rows that tell how far channels, or threads, are read."""

    method: ClassVar[str]

    async def let_others_go_first(self, due: Due, /) -> None: ...
    async def forget_cursor(self, due: Due, /) -> None: ...
    async def fail(self, due: Due, error: str, retry: Retry, /) -> None: ...


def usable(answer: Page | Refusal, root_ts: str = "") -> Page | Refusal:
    """A page that says there is more, but not where to go on, is none. A root is no way on."""
    if isinstance(answer, Refusal) or not answer.has_more or answer.next_cursor:
        return answer
    if any(ts != root_ts for ts in shown_ts(answer.rows)):
        return answer
    return Refusal(Remedy.RETRY, "an empty page without a cursor")


async def record_refusal(
    run: Run, rows: Rows, keeper: Keeper[Due], due: Due, refusal: Refusal
) -> None:
    """Make sure that this page is asked for again when it may be, and that others go on."""
    jitter = run.backfill.resources.jitter()
    match refusal.remedy:
        case Remedy.WAIT:
            await rows.slots.hold_off(keeper.method, refusal.retry_after_seconds, jitter)
            await keeper.let_others_go_first(due)
        case Remedy.LEAVE:
            await rows.channels.leave(due.channel_id, refusal.error)
        case Remedy.STOP:
            await rows.channels.stop_all(refusal.error)
        case Remedy.RESUME if due.cursor:
            await keeper.forget_cursor(due)
        case _:
            await keeper.fail(due, refusal.error, retry_of(due.attempts, jitter))
