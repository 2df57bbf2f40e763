"""What happens around every served call: identity, deadline, request id, errors, one log line."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import grpc
import psycopg
import psycopg_pool
import structlog

from recall.error.v1 import error_pb2
from services.runtime import call as calls
from services.runtime import errors
from services.runtime.callers import Caller, Callers, CallersFileError

REQUEST_ID = "x-request-id"
AUTHORIZATION = "authorization"
# Open to anybody who reaches the port: they show no data and probes carry no token.
OPEN_SERVICES = ("grpc.health.", "grpc.reflection.")

# SQLSTATE class of program limits, which psycopg counts among the operational errors.
_LIMITS_CLASS = "54"

Handler = Any  # grpc.RpcMethodHandler: untyped in the library's own stubs
Context = grpc.aio.ServicerContext[Any, Any]

log = structlog.get_logger("rpc")


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Wraps every handler of a server. ``callers`` None admits everybody (never in production)."""

    def __init__(self, callers: Callers | None) -> None:
        self._callers = callers

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """Replace the handler's behaviour by the same behaviour inside ``_served``."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.lstrip("/").startswith(OPEN_SERVICES):
            return handler
        return self._wrapped(handler, method, dict(handler_call_details.invocation_metadata))

    def _wrapped(self, handler: Handler, method: str, metadata: dict[str, Any]) -> Handler:
        if handler.response_streaming:
            behaviour = handler.stream_stream or handler.unary_stream
        else:
            behaviour = handler.stream_unary or handler.unary_unary

        # gRPC tells the kinds apart by what kind of function the behaviour is.
        async def unary(request: Any, context: Context) -> Any:
            return await self._unary(behaviour, (request, context), method, metadata)

        async def streaming(request: Any, context: Context) -> AsyncIterator[Any]:
            async for reply in self._streaming(behaviour, (request, context), method, metadata):
                yield reply

        return _handler_factory(handler)(
            streaming if handler.response_streaming else unary,
            handler.request_deserializer,
            handler.response_serializer,
        )

    async def _unary(
        self, behaviour: Any, arguments: tuple[Any, Context], method: str, metadata: dict[str, Any]
    ) -> Any:
        with _Served(method, metadata, arguments[1]) as served:
            try:
                served.identify(self._callers)
                return await behaviour(*arguments)
            except BaseException as error:
                await served.fail(error)

    async def _streaming(
        self, behaviour: Any, arguments: tuple[Any, Context], method: str, metadata: dict[str, Any]
    ) -> AsyncIterator[Any]:
        with _Served(method, metadata, arguments[1]) as served:
            try:
                served.identify(self._callers)
                async for reply in behaviour(*arguments):
                    yield reply
            except BaseException as error:
                await served.fail(error)


class _Served:
    """One call from its first to its last moment."""

    def __init__(self, method: str, metadata: dict[str, Any], context: Context) -> None:
        self._method = method
        self._metadata = metadata
        self._context = context
        self._request_id = str(metadata.get(REQUEST_ID) or uuid.uuid4())[:100]
        self._began = time.monotonic()
        self._code = grpc.StatusCode.OK
        self._caller: Caller | None = None

    def __enter__(self) -> _Served:
        structlog.contextvars.bind_contextvars(request_id=self._request_id, rpc=self._method)
        return self

    def __exit__(self, *_: object) -> None:
        log.info(
            "served",
            code=self._code.name,
            caller=self._caller.name if self._caller else "",
            milliseconds=round((time.monotonic() - self._began) * 1000, 1),
        )

    def identify(self, callers: Callers | None) -> None:
        if callers is not None:
            self._caller = callers.identify(str(self._metadata.get(AUTHORIZATION, "")))
        left = self._context.time_remaining()
        # A call without a deadline reports the largest representable one.
        deadline = time.monotonic() + left if left is not None and left < 10**6 else None
        calls.current.set(calls.Call(self._request_id, self._caller, deadline))

    async def fail(self, error: BaseException) -> NoReturn:
        """End the call with the status of ``error``."""
        if isinstance(error, grpc.aio.AbortError):
            raise error
        if not isinstance(error, Exception):
            self._code = grpc.StatusCode.CANCELLED
            raise error
        call_error = as_call_error(error, self._request_id)
        self._code = call_error.code
        if call_error.code == grpc.StatusCode.INTERNAL:
            log.error("defect", exc_info=error)
        elif call_error.code == grpc.StatusCode.UNAVAILABLE:
            log.warning("unavailable", reason=call_error.reason_name, detail=call_error.message)
        await self._context.abort_with_status(errors.to_status(call_error))
        raise AssertionError("abort_with_status returned")


def as_call_error(error: Exception, request_id: str) -> errors.CallError:
    """What the caller is told about an exception."""
    if isinstance(error, errors.CallError):
        return error
    if isinstance(error, grpc.RpcError):
        return errors.from_rpc_error(error)
    if isinstance(error, psycopg.errors.QueryCanceled | TimeoutError):
        return errors.deadline_too_short("The work did not fit into the deadline. Ask again.")
    if _exceeds_a_limit(error):
        return errors.internal(request_id)
    if isinstance(error, psycopg.errors.DiskFull):
        return errors.unavailable(
            error_pb2.ERROR_REASON_DATABASE_UNAVAILABLE,
            "The disk of the database is full. Make room, then call again.",
        )
    if isinstance(error, psycopg.OperationalError | psycopg_pool.PoolTimeout):
        return errors.unavailable(
            error_pb2.ERROR_REASON_DATABASE_UNAVAILABLE,
            "The database can not be reached. It is tried again with the next call.",
        )
    if isinstance(error, CallersFileError):
        return errors.CallError(
            grpc.StatusCode.FAILED_PRECONDITION, error_pb2.ERROR_REASON_CALLER_UNKNOWN, str(error)
        )
    return errors.internal(request_id)


def _exceeds_a_limit(error: Exception) -> bool:
    """Whether the database answered that a value or statement is too large: it always will."""
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith(_LIMITS_CLASS)


def _handler_factory(handler: Handler) -> Callable[..., Handler]:
    if handler.request_streaming:
        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler
        return grpc.stream_unary_rpc_method_handler
    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler
    return grpc.unary_unary_rpc_method_handler


@contextmanager
def call_in_progress(call: calls.Call) -> Iterator[None]:
    """Run a block as if it served ``call``; for work that no RPC started (worker jobs)."""
    token = calls.current.set(call)
    try:
        yield
    finally:
        calls.current.reset(token)
