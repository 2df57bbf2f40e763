"""Links to the exact message, built from its id."""

from __future__ import annotations

import re

from services.corpus import Source, id_parts, source_of

_TS = re.compile(r"[0-9]{10}\.[0-9]{6}")


def permalink(message_id: str, thread_root_id: str, domain: str) -> str:
    """The link that opens a message where it stands; empty when its source has no links.

    ``domain`` is the Slack workspace's ("acme" of acme.slack.com); without one, slack.com sends
    a signed-in reader on to the right workspace. Only a reply names its thread.
    """
    if source_of(message_id) is not Source.SLACK:
        return ""
    _, _, channel_id, ts = id_parts(message_id)
    root_ts = id_parts(thread_root_id)[-1]
    if not _TS.fullmatch(ts):
        return ""
    host = f"{domain}.slack.com" if domain else "slack.com"
    link = f"https://{host}/archives/{channel_id}/p{ts.replace('.', '')}"
    return link if root_ts == ts else f"{link}?thread_ts={root_ts}&cid={channel_id}"
