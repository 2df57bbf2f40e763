"""Reading messages again right before they are shown."""

from __future__ import annotations

from collections.abc import Sequence

from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.checking import Checked, suppressed, unchanged_ids
from services.gateway.clients import Stages, reach
from services.gateway.deadline import Deadline

REREAD_SECONDS = 5.0
IDS_PER_CALL = 200


async def still_unchanged(
    messages: Sequence[corpus_pb2.Message],
    context: corpus_pb2.QueryContext,
    stages: Stages,
    deadline: Deadline,
) -> set[str]:
    """Ids of the messages that still exist for this reader and read the same.

    Raises CallError when retrieve can not say: what can not be checked is not shown.
    """
    current: list[corpus_pb2.Message] = []
    for start in range(0, len(messages), IDS_PER_CALL):
        part = messages[start : start + IDS_PER_CALL]
        request = retrieve_pb2.ReadMessagesRequest(
            context=context, message_ids=[message.message_id for message in part]
        )
        seconds = deadline.share(REREAD_SECONDS)
        reply = await reach("retrieve", stages.retriever.ReadMessages, request, seconds)
        current += reply.messages
    return unchanged_ids(messages, current)


async def suppressed_if_changed(
    checked: Checked, context: corpus_pb2.QueryContext, stages: Stages, deadline: Deadline
) -> Checked:
    """The checked text, or SUPPRESSED when one of its citations no longer reads the same."""
    kept = await still_unchanged(checked.citations, context, stages, deadline)
    return checked if len(kept) == len(checked.citations) else suppressed()
