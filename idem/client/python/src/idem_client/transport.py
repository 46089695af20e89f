"""Transports for httpx: they give every POST and PATCH a key, and ask with it until there is an answer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

import anyio
import anyio.to_thread
import httpx

from .answer import Answer, bound
from .config import Config
from .errors import KeyRefusedError
from .journal import Journal
from .machine import KEY, OPERATION, STORED, WITHOUT_KEY, Alone, Ask, Begin, Lost, Machine, Pause, Reply, consult, declared, entry_of, follow, land, refused_body, send, too_long


def operation(name: str) -> dict[str, Any]:
    """The `extensions` of a request that is the caller's operation of that name, such as "order-17/charge": the same name
    has the same key, after a restart too, until `done`."""
    return {OPERATION: name}


def with_key(key: str) -> dict[str, Any]:
    """The `extensions` of a request that is sent with this key. It counts as one that was used before, since it may be that of
    an error: an answer that does not come from behind the key, such as a 401, then ends in a GaveUpError."""
    return {KEY: key}


def without_key() -> dict[str, Any]:
    """The `extensions` of a request that is sent as it is, once: for endpoints that do not honour keys."""
    return {WITHOUT_KEY: True}


def key_of(response: httpx.Response) -> str | None:
    """The key that the response's request was sent with."""
    key = response.request.extensions.get(KEY)
    return key if isinstance(key, str) else None


def stored(response: httpx.Response) -> bool:
    """Whether a response of a transport or of `await_final` is the operation's stored, final answer: the same key gets it
    again. Keep such an answer whatever its status is, then call `done`. It may be a 502 that says that the operation failed,
    or the 500 idempotency_response_not_kept, which says that it was executed. Another response may still be the operation's
    answer, such as the 201 of an API that marks none; or it may decide nothing, such as the 401 of a token that is over. A 202
    is not stored before `await_final` has followed it."""
    return response.extensions.get(STORED) is True


def _ended(config: Config, key: str | None) -> tuple[Journal, str]:
    """The journal and the key of an operation that ends."""
    if config.journal is None:
        raise KeyRefusedError("a named operation needs a journal")
    if not key:
        raise KeyRefusedError("done needs the key of the operation's answer")
    return config.journal, key


def _lost(cause: Exception, response: httpx.Response | None) -> Lost:
    """What an attempt came to that has no whole answer: whatever the cause is, what was sent may have happened."""
    return Lost(cause, None if response is None else Answer(response.status_code, response.headers, b""))


def _keyed(request: httpx.Request) -> bool:
    return request.method in ("POST", "PATCH") and not request.extensions.get(WITHOUT_KEY)


_SENDS = frozenset({"send_request_headers", "send_request_body"})
_PHASES = _SENDS | {"connect_tcp", "connect_unix_socket", "start_tls", "receive_response_headers", "receive_response_body"}
"""The phases of a request in httpcore that may be kept from beginning."""


class _Attempt:
    """Bounds one attempt, and looks at it once more when there is a connection: the machine may have been suspended while that
    was made. httpcore tells by the extension `trace` when a phase begins, and reads then how long it may wait."""

    def __init__(self, step: Ask, seconds: float) -> None:
        asked: dict[str, float | None] = step.request.extensions.get("timeout") or {}
        self._most = {name: min(asked.get(name) or seconds, seconds) for name in ("connect", "read", "write", "pool")}
        self._look, self._seconds, self._until = step.look, seconds, time.monotonic() + seconds
        self._bounds = dict(self._most)
        self.theirs = step.request.extensions.get("trace")

    def extensions(self, request: httpx.Request, trace: Callable[[str, Any], Any]) -> dict[str, Any]:
        """The request's extensions, with the bounds in place of the caller's that are longer."""
        return {**request.extensions, "timeout": self._bounds, "trace": trace}

    def event(self, name: str) -> None:
        """Takes an event of httpcore's, such as `http11.send_request_headers.started`."""
        phase, _, stage = name.partition(".")[2].partition(".")
        if stage != "started" or phase not in _PHASES:
            return
        if phase in _SENDS:
            self._look()
        left = self.left()
        self._bounds.update({wait: min(most, left) for wait, most in self._most.items()})

    def left(self) -> float:
        """The seconds that are left; a timeout where there are none."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise httpx.ReadTimeout(f"no whole answer within {self._seconds} s")
        return left


class IdempotencyTransport(httpx.BaseTransport):
    """For `httpx.Client(transport=...)`. Safe for use by several threads."""

    def __init__(self, config: Config | None = None, base: httpx.BaseTransport | None = None, *, pause: Callable[[float], None] = time.sleep) -> None:
        """`base` makes the requests, and must not repeat them by itself. What it loses it says by an error of httpx or an OSError;
        any other one ends the call. Default: httpx.HTTPTransport()."""
        self._config = config or Config()
        self._base = base or httpx.HTTPTransport()
        self._pause = pause

    def __enter__(self) -> IdempotencyTransport:
        self._base.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None = None, error: BaseException | None = None, trace: TracebackType | None = None) -> None:
        self._base.__exit__(kind, error, trace)

    def close(self) -> None:
        """Closes the transport below."""
        self._base.close()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a POST or PATCH until it has an answer, and anything else as it is. Raises an IdempotencyError where there
        is no answer, and a NotSentError or httpx's own error where this call sent nothing."""
        if not _keyed(request):
            entry = entry_of(request)
            return self._base.handle_request(request) if entry is None else self._drive(land(self._config, request, entry))
        return self._drive(send(self._config, request, self._body(request)))

    def await_final(self, accepted: httpx.Response) -> httpx.Response:
        """Follows the Location of a 202 until the operation is final, and returns the final response as a retry of the
        request would get it; any other response as it is. It asks with the request's headers, and only on the same
        origin. Raises an OutcomeUnknownError, a GaveUpError, or an ExpiredError where the API says in a problem document of
        its own that the operation is gone. After all but an ExpiredError, sending the request again with the same key says
        as much as the Location does. Not so where the 202 said that the key protects nothing: each end but an ExpiredError is
        then a GaveUpError whose reason is `unprotected`, and the request, sent again, would be executed beside the first."""
        if accepted.status_code != 202:
            return accepted
        final = self._drive(follow(self._config, accepted))
        final.read()
        return final

    def done(self, name: str, key: str | None) -> None:
        """Ends the named operation that has the key, which is `key_of` its answer, once that is kept where a restart finds it: the
        name then begins a new one. Where another caller has ended the operation, and the name has begun the next one, that one
        goes on. Raises a KeyRefusedError without a key."""
        journal, key = _ended(self._config, key)
        journal.done(name, key)

    def _drive(self, machine: Machine) -> httpx.Response:
        reply: Reply = None
        while True:
            try:
                step = machine.send(reply)
            except StopIteration as end:
                response: httpx.Response = end.value
                return response
            try:
                if isinstance(step, Pause):
                    self._pause(step.seconds)
                    reply = None
                else:
                    reply = self._ask(step) if isinstance(step, Ask) else self._consult(step)
            except Exception as cause:  # whatever it is: what was sent may have happened
                reply = Lost(cause)

    def _consult(self, step: Begin | Alone) -> Reply:
        return consult(self._config, step)

    def _ask(self, step: Ask) -> Answer | Lost:
        request, attempt = step.request, _Attempt(step, self._config.attempt_timeout)

        def trace(name: str, info: Any) -> Any:
            said = attempt.theirs(name, info) if attempt.theirs else None
            attempt.event(name)
            return said

        request.extensions = attempt.extensions(request, trace)
        response: httpx.Response | None = None
        try:
            response = self._base.handle_request(request)
            with contextlib.closing(response):
                body = bytearray()
                assert isinstance(response.stream, httpx.SyncByteStream)
                for chunk in response.stream:
                    body += chunk
                    bound(body, self._config.answer_bytes_max)
                    attempt.left()
            return Answer(response.status_code, response.headers, bytes(body), response.extensions)
        except Exception as cause:
            return _lost(cause, response)

    def _body(self, request: httpx.Request) -> bytes:
        try:
            return request.content
        except httpx.RequestNotRead:
            declared(request, self._config.body_bytes_max)
        if not isinstance(request.stream, httpx.SyncByteStream):
            raise refused_body(request, "the body is an asynchronous stream")
        body = bytearray()
        for chunk in request.stream:
            body += chunk
            if len(body) > self._config.body_bytes_max:
                raise too_long(request, self._config.body_bytes_max)
        return bytes(body)


class AsyncIdempotencyTransport(httpx.AsyncBaseTransport):
    """For `httpx.AsyncClient(transport=...)`, on asyncio and trio. The journal is called in a thread. A cancellation stays
    one, after which the operation may have happened: name operations whose task may be cancelled."""

    def __init__(
        self, config: Config | None = None, base: httpx.AsyncBaseTransport | None = None, *, pause: Callable[[float], Awaitable[None]] = anyio.sleep
    ) -> None:
        """`base` makes the requests, and must not repeat them by itself. What it loses it says by an error of httpx or an OSError;
        any other one ends the call. Default: httpx.AsyncHTTPTransport()."""
        self._config = config or Config()
        self._base = base or httpx.AsyncHTTPTransport()
        self._pause = pause

    async def __aenter__(self) -> AsyncIdempotencyTransport:
        await self._base.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None = None, error: BaseException | None = None, trace: TracebackType | None = None) -> None:
        await self._base.__aexit__(kind, error, trace)

    async def aclose(self) -> None:
        """Closes the transport below."""
        await self._base.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As IdempotencyTransport.handle_request."""
        if not _keyed(request):
            entry = entry_of(request)
            return await self._base.handle_async_request(request) if entry is None else await self._drive(land(self._config, request, entry))
        return await self._drive(send(self._config, request, await self._body(request)))

    async def await_final(self, accepted: httpx.Response) -> httpx.Response:
        """As IdempotencyTransport.await_final."""
        if accepted.status_code != 202:
            return accepted
        final = await self._drive(follow(self._config, accepted))
        await final.aread()
        return final

    async def done(self, name: str, key: str | None) -> None:
        """As IdempotencyTransport.done."""
        journal, key = _ended(self._config, key)
        await anyio.to_thread.run_sync(journal.done, name, key)

    async def _drive(self, machine: Machine) -> httpx.Response:
        reply: Reply = None
        while True:
            try:
                step = machine.send(reply)
            except StopIteration as end:
                response: httpx.Response = end.value
                return response
            try:
                if isinstance(step, Pause):
                    await self._pause(step.seconds)
                    reply = None
                else:
                    reply = await self._ask(step) if isinstance(step, Ask) else await self._consult(step)
            except Exception as cause:  # whatever it is: what was sent may have happened
                reply = Lost(cause)

    async def _consult(self, step: Begin | Alone) -> Reply:
        return await anyio.to_thread.run_sync(consult, self._config, step)

    async def _ask(self, step: Ask) -> Answer | Lost:
        request, attempt = step.request, _Attempt(step, self._config.attempt_timeout)

        async def trace(name: str, info: Any) -> None:
            if attempt.theirs:
                await attempt.theirs(name, info)
            attempt.event(name)

        request.extensions = attempt.extensions(request, trace)
        response: httpx.Response | None = None
        try:
            with anyio.fail_after(self._config.attempt_timeout):
                response = await self._base.handle_async_request(request)
                async with contextlib.aclosing(response):
                    body = bytearray()
                    assert isinstance(response.stream, httpx.AsyncByteStream)
                    async for chunk in response.stream:
                        body += chunk
                        bound(body, self._config.answer_bytes_max)
            return Answer(response.status_code, response.headers, bytes(body), response.extensions)
        except Exception as cause:
            return _lost(cause, response)

    async def _body(self, request: httpx.Request) -> bytes:
        try:
            return request.content
        except httpx.RequestNotRead:
            declared(request, self._config.body_bytes_max)
        if not isinstance(request.stream, httpx.AsyncByteStream):
            raise refused_body(request, "the body is a synchronous stream")
        body = bytearray()
        async for chunk in request.stream:
            body += chunk
            if len(body) > self._config.body_bytes_max:
                raise too_long(request, self._config.body_bytes_max)
        return bytes(body)
