"""The control operations over HTTP: JSON parameters in, JSON results out."""

from __future__ import annotations

import inspect
import json
from dataclasses import asdict, is_dataclass
from typing import Any

from aiohttp import web

from tests.fakes.slack_server.control import SlackControl, operation_names
from tests.fakes.slack_server.state import ControlError, Json, SlackError


def plain(value: Any) -> Any:
    """A result as JSON can hold it."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(part) for part in value)
    return value


async def list_operations(request: web.Request) -> web.Response:
    """Every operation with its parameters and first line of explanation."""
    described = {name: _described(name) for name in operation_names()}
    return web.json_response(described, dumps=lambda body: json.dumps(body, indent=1) + "\n")


def _described(name: str) -> Json:
    operation = getattr(SlackControl, name)
    parameters = [
        str(parameter)
        for parameter in inspect.signature(operation).parameters.values()
        if parameter.name != "self"
    ]
    summary = (inspect.getdoc(operation) or "").partition("\n")[0]
    return {"parameters": parameters, "does": summary}


async def run_operation(control: SlackControl, request: web.Request) -> web.Response:
    """Run one operation; 404 for an unknown one, 400 with the reason for a wrong use."""
    name = request.match_info["operation"]
    if name not in operation_names():
        return _refusal(404, f"There is no operation {name!r}; GET /control lists them.")
    try:
        arguments = await _arguments(request)
        operation = getattr(control, name)
        inspect.signature(operation).bind(**arguments)
        result = operation(**arguments)
        if inspect.isawaitable(result):
            result = await result
    except (ControlError, SlackError, TypeError) as error:
        return _refusal(400, f"{name}: {error}")
    return web.json_response({"result": plain(result)})


async def _arguments(request: web.Request) -> Json:
    raw = await request.read()
    try:
        parsed = json.loads(raw or b"{}")
    except ValueError:
        raise ControlError("the body is not JSON; send an object of parameters.") from None
    if not isinstance(parsed, dict):
        raise ControlError("the body is not a JSON object of parameters.")
    return parsed


def _refusal(status: int, error: str) -> web.Response:
    return web.json_response({"error": error}, status=status)
