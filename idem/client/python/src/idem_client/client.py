"""A client without a transport to wire: an httpx client whose requests can name their operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

import httpx

from .config import Config
from .machine import KEY, OPERATION
from .transport import AsyncIdempotencyTransport, IdempotencyTransport


def _extensions(name: str | None, key: str | None) -> dict[str, Any]:
    return {extension: value for extension, value in ((OPERATION, name), (KEY, key)) if value is not None}


class Client:
    """Sends requests to one API, which begins at base_url. Safe for use by several threads."""

    def __init__(self, base_url: str, config: Config | None = None, *, headers: Mapping[str, str] | None = None, base: httpx.BaseTransport | None = None) -> None:
        self._transport = IdempotencyTransport(replace(config or Config(), base_url=base_url), base)
        # Config.attempt_timeout is the only bound: httpx's own, 5 s, is shorter than many an answer takes.
        self._http = httpx.Client(transport=self._transport, base_url=base_url, headers=headers, timeout=None)

    def __enter__(self) -> Client:
        self._http.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None = None, error: BaseException | None = None, trace: TracebackType | None = None) -> None:
        self._http.__exit__(kind, error, trace)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def request(self, method: str, path: str, *, operation: str | None = None, key: str | None = None, **more: Any) -> httpx.Response:
        """Sends a request; `more` is what httpx.Client.request takes (json, content, headers, params). `operation` names
        the caller's operation, `key` gives its key; without both a POST or PATCH gets a new key."""
        return self._http.request(method, path, extensions=_extensions(operation, key), **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        """See `request`."""
        return self.request("POST", path, **more)

    def patch(self, path: str, **more: Any) -> httpx.Response:
        """See `request`."""
        return self.request("PATCH", path, **more)

    def get(self, path: str, **more: Any) -> httpx.Response:
        """See `request`."""
        return self.request("GET", path, **more)

    def await_final(self, accepted: httpx.Response) -> httpx.Response:
        """Follows a 202 to its end: see IdempotencyTransport.await_final."""
        return self._transport.await_final(accepted)

    def done(self, operation: str, key: str | None) -> None:
        """Ends a named operation by its answer's key: see IdempotencyTransport.done."""
        self._transport.done(operation, key)


class AsyncClient:
    """The same for asyncio and trio."""

    def __init__(self, base_url: str, config: Config | None = None, *, headers: Mapping[str, str] | None = None, base: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = AsyncIdempotencyTransport(replace(config or Config(), base_url=base_url), base)
        self._http = httpx.AsyncClient(transport=self._transport, base_url=base_url, headers=headers, timeout=None)

    async def __aenter__(self) -> AsyncClient:
        await self._http.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None = None, error: BaseException | None = None, trace: TracebackType | None = None) -> None:
        await self._http.__aexit__(kind, error, trace)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def request(self, method: str, path: str, *, operation: str | None = None, key: str | None = None, **more: Any) -> httpx.Response:
        """See Client.request."""
        return await self._http.request(method, path, extensions=_extensions(operation, key), **more)

    async def post(self, path: str, **more: Any) -> httpx.Response:
        """See `request`."""
        return await self.request("POST", path, **more)

    async def patch(self, path: str, **more: Any) -> httpx.Response:
        """See `request`."""
        return await self.request("PATCH", path, **more)

    async def get(self, path: str, **more: Any) -> httpx.Response:
        """See `request`."""
        return await self.request("GET", path, **more)

    async def await_final(self, accepted: httpx.Response) -> httpx.Response:
        """Follows a 202 to its end: see IdempotencyTransport.await_final."""
        return await self._transport.await_final(accepted)

    async def done(self, operation: str, key: str | None) -> None:
        """Ends a named operation by its answer's key: see IdempotencyTransport.done."""
        await self._transport.done(operation, key)
