"""What people type and press; awaited, with the app's answer shown to them as Slack does."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.fakes.slack_server import acts, events
from tests.fakes.slack_server import interactions as forms
from tests.fakes.slack_server.control_base import ControlBase
from tests.fakes.slack_server.messages import SLACKBOT, Draft
from tests.fakes.slack_server.methods_surfaces import view_json
from tests.fakes.slack_server.records import Acknowledgement
from tests.fakes.slack_server.rendering import message_json
from tests.fakes.slack_server.sender import Attempt
from tests.fakes.slack_server.state import (
    Channel,
    ControlError,
    Json,
    Message,
    SlackError,
    Team,
    Trigger,
    User,
    View,
)


class InteractionsControl(ControlBase):
    """Commands, clicks, shortcuts, modals and the challenge."""

    async def command(
        self, user: str, channel: str, text: str, *, command: str = "/recall", team: str = ""
    ) -> Acknowledgement:
        """Type a slash command; a text in the app's answer is shown to the person at once."""
        person, place, home = self._where(user, channel, team)
        trigger = self.world.new_trigger(home.team_id, person.user_id)
        answer_at = self.world.new_response_url(place, home.team_id, person.user_id)
        url = forms.response_address(self.world.origin, answer_at)
        fields = forms.command_fields(self.world.app, home, place, person, (command, text))
        fields |= {"response_url": url, "trigger_id": trigger.trigger_id}
        attempt = await self.sender.ask(
            self.world.addresses.commands_url, "slash_commands", fields, dict(fields)
        )
        self._show_answer(attempt, command, place, person)
        return Acknowledgement(attempt.status, attempt.body, trigger.trigger_id, url)

    async def click(
        self,
        user: str,
        channel: str,
        ts: str,
        action_id: str,
        *,
        value: str = "",
        team: str = "",
    ) -> Acknowledgement:
        """Press a button of a message, also of one that only this person sees."""
        person, place, home = self._where(user, channel, team)
        message, is_ephemeral = self._message(place, person, ts)
        shown = message_json(self.world.slack, place, message)
        action = self._button(message.blocks, action_id, value)
        trigger = self.world.new_trigger(home.team_id, person.user_id)
        answer_at = self.world.new_response_url(
            place, home.team_id, person.user_id, thread=message.thread_ts, original=ts
        )
        url = forms.response_address(self.world.origin, answer_at)
        payload = forms.interaction_base(self.world.app, home, person, trigger)
        payload |= forms.message_place(place, url) | {"type": "block_actions"}
        payload["container"] = forms.message_container(place, shown, is_ephemeral=is_ephemeral)
        # Slack leaves the message out of a click on an ephemeral one.
        payload |= {} if is_ephemeral else {"message": shown}
        payload["actions"] = [action | {"action_ts": self.world.event_ts()}]
        return await self._interact(payload, trigger, url)

    async def click_home(
        self, user: str, action_id: str, *, value: str = "", team: str = ""
    ) -> Acknowledgement:
        """Press a button of the Home tab."""
        person, home = self.find_user(user, team), self.find_team(team)
        view = self._view(f"VHOME{person.user_id}")
        action = self._button(view.body.get("blocks") or [], action_id, value)
        trigger = self.world.new_trigger(home.team_id, person.user_id)
        payload = forms.interaction_base(self.world.app, home, person, trigger)
        payload |= {"type": "block_actions", "view": view_json(self.world, view)}
        payload["container"] = {"type": "view", "view_id": view.view_id}
        payload["actions"] = [action | {"action_ts": self.world.event_ts()}]
        return await self._interact(payload, trigger, "")

    async def shortcut(
        self, user: str, channel: str, ts: str, callback_id: str, *, team: str = ""
    ) -> Acknowledgement:
        """Choose a message shortcut."""
        person, place, home = self._where(user, channel, team)
        message, _ = self._message(place, person, ts)
        trigger = self.world.new_trigger(home.team_id, person.user_id)
        answer_at = self.world.new_response_url(
            place, home.team_id, person.user_id, thread=message.thread_ts
        )
        url = forms.response_address(self.world.origin, answer_at)
        payload = forms.interaction_base(self.world.app, home, person, trigger)
        payload |= forms.message_place(place, url)
        payload |= {"type": "message_action", "callback_id": callback_id, "message_ts": ts}
        payload["action_ts"] = self.world.event_ts()
        payload["message"] = message_json(self.world.slack, place, message)
        return await self._interact(payload, trigger, url)

    async def submit_view(
        self, user: str, view_id: str, values: Mapping[str, Json], *, team: str = ""
    ) -> Acknowledgement:
        """Submit a modal; ``values`` is block id → action id → state, as Slack sends it.

        The modal stays when the answer holds ``response_action`` errors or update.
        """
        person, home, view = self.find_user(user, team), self.find_team(team), self._view(view_id)
        trigger = self.world.new_trigger(home.team_id, person.user_id)
        payload = forms.interaction_base(self.world.app, home, person, trigger)
        submitted = view_json(self.world, view) | {"state": {"values": dict(values)}}
        payload |= {"type": "view_submission", "view": submitted, "response_urls": []}
        answer = await self._interact(payload, trigger, "")
        self._after_submission(view, answer)
        return answer

    async def open_home(self, user: str, *, tab: str = "home", team: str = "") -> None:
        """``app_home_opened``, with tab ``home`` or ``messages``."""
        person, home = self.find_user(user, team), self.find_team(team)
        bot = self.find_installation(team).bot_user_id
        channel, _ = acts.open_direct(self.world, home.team_id, [bot, person.user_id])
        opened = events.home_opened_event(channel, person, tab, self.world.event_ts())
        self.world.publish_to_team(home.team_id, opened)

    async def verify_url(self, challenge: str = "abc") -> Acknowledgement:
        """The signed challenge of the moment when an events URL is entered."""
        payload = {"token": self.world.app.verification_token, "type": "url_verification"}
        attempt = await self.sender.ask_json(
            self.world.addresses.events_url, payload | {"challenge": challenge}
        )
        return Acknowledgement(attempt.status, attempt.body)

    def _where(self, user: str, channel: str, team: str) -> tuple[User, Channel, Team]:
        place = self.find_channel(channel, team)
        home = self.find_team(team or place.team_id)
        return self.find_user(user, home.team_id), place, home

    def _message(self, channel: Channel, person: User, ts: str) -> tuple[Message, bool]:
        if ts in channel.messages:
            return channel.messages[ts], False
        for entry in self.world.slack.ephemerals:
            seen = (entry.channel_id, entry.user) == (channel.channel_id, person.user_id)
            if seen and entry.message.ts == ts:
                return entry.message, True
        raise ControlError(f"{person.name} sees no message {ts} in {channel.name}.")

    def _button(self, blocks: list[Json], action_id: str, value: str) -> Json:
        action = forms.find_button(blocks, action_id, value)
        if action is None:
            known = ", ".join(found["action_id"] for found in forms.buttons(blocks)) or "none"
            raise ControlError(f"There is no button {action_id!r} {value!r} here; ids: {known}.")
        return action

    def _view(self, view_id: str) -> View:
        view = self.world.slack.views.get(view_id)
        if view is None:
            known = ", ".join(self.world.slack.views) or "none"
            raise ControlError(f"No view {view_id!r} is open; open are: {known}.")
        return view

    async def _interact(self, payload: Json, trigger: Trigger, url: str) -> Acknowledgement:
        fields = {"payload": json.dumps(payload, ensure_ascii=False)}
        address = self.world.addresses.interactions_url
        attempt = await self.sender.ask(address, "interactive", fields, payload)
        return Acknowledgement(attempt.status, attempt.body, trigger.trigger_id, url)

    def _after_submission(self, view: View, answer: Acknowledgement) -> None:
        if answer.status != 200:
            return
        body = _json_object(answer.body)
        action = body.get("response_action", "clear")
        if action in ("update", "push") and "view" in body:
            view.body = body["view"]
        elif action == "clear":
            self.world.slack.views.pop(view.view_id, None)

    def _show_answer(self, attempt: Attempt, command: str, channel: Channel, person: User) -> None:
        """Show the app's immediate answer, or Slack's sentence about its failure."""
        if attempt.reason:
            code = "operation_timeout" if attempt.reason == "http_timeout" else "dispatch_failed"
            text = f'{command} failed with the error "{code}"'
            self._show(channel, person, Draft(SLACKBOT, text))
            return
        body = _json_object(attempt.body)
        text = str(body.get("text", "")) if body else attempt.body
        if not text and not body.get("blocks"):
            return
        bot = self.world.slack.installation_of(channel.team_id)
        if bot is None:
            raise SlackError("account_inactive")
        draft = Draft(
            bot.bot_user_id, text, bot_id=bot.bot_id, lists={"blocks": body.get("blocks") or []}
        )
        if body.get("response_type") == "in_channel":
            acts.post(self.world, channel, draft)
        else:
            self._show(channel, person, draft)

    def _show(self, channel: Channel, person: User, draft: Draft) -> None:
        acts.show_only_to(self.world, channel, person.user_id, draft)


def _json_object(text: str) -> Json:
    try:
        parsed = json.loads(text)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
