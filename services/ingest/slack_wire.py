"""Proto to values and values to proto, for what an installed Slack app needs of ingest."""

from __future__ import annotations

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import ingest_pb2, slack_pb2
from services.corpus import instant, timestamp
from services.ingest.complete_install import Install
from services.ingest.correct_message import Correction
from services.ingest.lease_token import Lease
from services.ingest.purges import PurgeReport
from services.ingest.record_event import Recorded, SlackDelivery
from services.ingest.save_rotated_token import RotatedToken
from services.ingest.settings import WorkspaceSettings
from services.runtime.errors import invalid

RECORDED = {
    Recorded.NEW: slack_pb2.RECORDED_NEW,
    Recorded.DUPLICATE: slack_pb2.RECORDED_DUPLICATE,
    Recorded.IGNORED: slack_pb2.RECORDED_IGNORED,
}
_TRUST_MODES = {
    "default": corpus_pb2.TRUST_MODE_UNSPECIFIED,
    "strict": corpus_pb2.TRUST_MODE_STRICT,
    "relaxed": corpus_pb2.TRUST_MODE_RELAXED,
}
_TRUST_WORDS = {mode: word for word, mode in _TRUST_MODES.items()}


def delivery(request: slack_pb2.RecordEventRequest) -> SlackDelivery:
    """An event as the edge delivers it."""
    return SlackDelivery(
        team_id=request.team_id,
        enterprise_id=request.enterprise_id,
        event_id=request.event_id,
        envelope=request.envelope_json,
    )


def recorded(outcome: Recorded) -> slack_pb2.RecordEventResponse:
    """What became of an event."""
    return slack_pb2.RecordEventResponse(recorded=RECORDED[outcome])


def purge_report(report: PurgeReport) -> ingest_pb2.GetPurgeResponse:
    """A purge's report."""
    return ingest_pb2.GetPurgeResponse(
        scope=report.scope,
        is_finished=report.finished_at is not None,
        deleted=dict(report.deleted),
        requested_at=timestamp(report.requested_at),
        finished_at=timestamp(report.finished_at),
        is_given_up=report.is_given_up,
    )


def correction(request: ingest_pb2.CorrectMessageRequest) -> Correction:
    """What somebody declares."""
    return Correction(
        request.workspace_id, request.message_id, request.corrected_by_id, request.person_id
    )


def install(request: slack_pb2.CompleteInstallRequest) -> Install:
    """What Slack told about an installed app."""
    expires = request.HasField("token_expires_at")
    return Install(
        team_id=request.team_id,
        enterprise_id=request.enterprise_id,
        is_enterprise_install=request.is_enterprise_install,
        app_id=request.app_id,
        bot_user_id=request.bot_user_id,
        bot_id=request.bot_id,
        url=request.url,
        scopes=tuple(request.scopes),
        bot_token=request.bot_token,
        refresh_token=request.refresh_token,
        token_expires_at=instant(request.token_expires_at) if expires else None,
        installed_by=request.installed_by,
    )


def lease(found: Lease) -> slack_pb2.LeaseTokenResponse:
    """A token to use, and perhaps to rotate."""
    return slack_pb2.LeaseTokenResponse(**vars(found))


def rotated(request: slack_pb2.SaveRotatedTokenRequest) -> RotatedToken:
    """The tokens of a rotation."""
    expires = request.HasField("token_expires_at")
    return RotatedToken(
        request.bot_token,
        request.refresh_token,
        instant(request.token_expires_at) if expires else None,
    )


def settings(found: WorkspaceSettings) -> slack_pb2.Settings:
    """Settings for the wire; a default is absent."""
    given = {name: value for name, value in vars(found).items() if value is not None}
    trust = given.pop("trust", None)
    if trust is not None:
        given["trust_mode"] = _TRUST_MODES[trust]
    return slack_pb2.Settings(**given)


def _trust(mode: corpus_pb2.TrustMode.ValueType) -> str:
    if mode not in _TRUST_WORDS:
        raise invalid("settings.trust_mode", "must be strict, relaxed or unspecified (the default)")
    return _TRUST_WORDS[mode]


def wanted_settings(request: slack_pb2.UpdateSettingsRequest) -> WorkspaceSettings:
    """Settings to change; an absent one stays."""
    given = {field.name: value for field, value in request.settings.ListFields()}
    mode = given.pop("trust_mode", None)
    if mode is not None:
        given["trust"] = _trust(mode)
    return WorkspaceSettings(**given)
