"""``recall settings``: what trust means in a workspace."""

from __future__ import annotations

import argparse
import json

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import slack_pb2
from services.cli.as_json import Json
from services.cli.connection import OK, Stack
from services.cli.operate import STATUS_SECONDS, only_workspace
from services.cli.terminal import show

TRUST = {
    "default": corpus_pb2.TRUST_MODE_UNSPECIFIED,
    "strict": corpus_pb2.TRUST_MODE_STRICT,
    "relaxed": corpus_pb2.TRUST_MODE_RELAXED,
}
TARGETS = ("false_confirm_target", "false_abstain_target")


async def run_settings(options: argparse.Namespace, stack: Stack) -> int:
    """Change what is given, if anything; then show the settings in force."""
    workspace = options.workspace or await only_workspace(stack)
    wanted = wanted_settings(options)
    if wanted.ListFields():
        update = slack_pb2.UpdateSettingsRequest(workspace_id=workspace, settings=wanted)
        reply = await stack.settings.UpdateSettings(update, timeout=STATUS_SECONDS)
        found = reply.settings
    else:
        request = slack_pb2.GetSettingsRequest(workspace_id=workspace)
        found = (await stack.settings.GetSettings(request, timeout=STATUS_SECONDS)).settings
    told = as_json(found)
    if options.json:
        print(json.dumps(told, indent=2))
    else:
        show(
            "\n".join(
                f"{name.replace('_', '-'):22} {_shown(value)}" for name, value in told.items()
            )
        )
    return OK


def wanted_settings(options: argparse.Namespace) -> slack_pb2.Settings:
    """What the command line changes."""
    wanted = slack_pb2.Settings()
    if options.trust is not None:
        wanted.trust_mode = TRUST[options.trust]
    for name in TARGETS:
        value = getattr(options, name)
        if value is not None:
            setattr(wanted, name, value)
    return wanted


def as_json(found: slack_pb2.Settings) -> Json:
    """The settings of trust; null is the default."""
    words = {mode: word for word, mode in TRUST.items()}
    told: Json = {"trust": words[found.trust_mode] if found.HasField("trust_mode") else None}
    if found.HasField("false_confirm_target"):
        told["false_confirm_target"] = found.false_confirm_target
    if found.HasField("false_abstain_target"):
        told["false_abstain_target"] = found.false_abstain_target
    return {"trust": None, **dict.fromkeys(TARGETS), **told}


def _shown(value: object) -> str:
    return "default" if value is None else str(value)
