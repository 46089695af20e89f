"""What ends a call from outside, and what is only a lost attempt. Run where the built wheel is installed."""

import signal
import unittest
from collections.abc import Callable
from types import FrameType

import anyio
import httpcore
import httpx

import idem_client
from idem_client import Config, IdempotencyTransport

URL = "https://api.example/v1/payments"


class TimeIsUp(Exception):
    """What a signal handler raises, as that of a worker with a limit of time does."""


class Interrupted(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Fails as the list says, then answers, and keeps the keys that it was asked with."""

    def __init__(self, *failures: Callable[[], None]) -> None:
        self.failures = list(failures)
        self.keys: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(request.headers["Idempotency-Key"])
        if self.failures:
            self.failures.pop(0)()
        return httpx.Response(201, text="paid")

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.handle_request(request)


def alarm() -> None:
    signal.raise_signal(signal.SIGALRM)


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


class Interruptions(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        def handler(_: int, __: FrameType | None) -> None:
            raise TimeIsUp

        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)

    async def ends(self, *failures: Callable[[], None], pause: Callable[[], None] = lambda: None) -> list[tuple[str, int, type[object]]]:
        """What both transports end with: the reason, how often they sent, and the cause."""
        got = []
        base = Interrupted(*failures)
        transport = IdempotencyTransport(Config(), base, pause=lambda _: pause())
        with httpx.Client(transport=transport) as http, self.assertRaises(idem_client.GaveUpError) as ended:
            http.post(URL)
        got.append((ended.exception, base.keys))
        base = Interrupted(*failures)

        async def wait(_: float) -> None:
            pause()

        asynchronous = idem_client.AsyncIdempotencyTransport(Config(), base, pause=wait)
        async with httpx.AsyncClient(transport=asynchronous) as client:
            with self.assertRaises(idem_client.GaveUpError) as ended:
                await client.post(URL)
        got.append((ended.exception, base.keys))
        for error, keys in got:
            self.assertTrue(error.unknown)
            self.assertEqual(set(keys), {f'"{error.key}"'})
        return [(error.reason, len(keys), type(error.__cause__)) for error, keys in got]

    async def test_what_a_signal_handler_raises_ends_the_call_and_nothing_is_sent_again(self) -> None:
        self.assertEqual(await self.ends(alarm), [("permanent", 1, TimeIsUp)] * 2)
        self.assertEqual(await self.ends(failing(httpx.ReadError("lost")), pause=alarm), [("permanent", 1, TimeIsUp)] * 2)

    async def test_so_does_an_error_that_is_nobodys(self) -> None:
        for error in (RuntimeError("a proxy of one's own"), AssertionError(), KeyError("a mistake")):
            self.assertEqual(await self.ends(failing(error)), [("permanent", 1, type(error))] * 2)

    def test_one_while_an_operations_end_is_waited_for_does_too(self) -> None:
        accepted = [httpx.Response(202, headers={"Location": "/v1/operations/1"})]

        def serve(_: httpx.Request) -> httpx.Response:
            if accepted:
                return accepted.pop()
            raise TimeIsUp

        transport = IdempotencyTransport(Config(), httpx.MockTransport(serve), pause=lambda _: None)
        with httpx.Client(transport=transport) as http, self.assertRaises(idem_client.GaveUpError) as ended:
            transport.await_final(http.post(URL))
        self.assertEqual((ended.exception.reason, type(ended.exception.__cause__)), ("permanent", TimeIsUp))

    def test_an_error_of_the_network_is_a_lost_attempt(self) -> None:
        for error in (
            httpx.ReadError("reset"), httpx.RemoteProtocolError("half"), httpx.ConnectTimeout("silent"), OSError("reset"), TimeoutError("silent"),
            httpcore.ReadError("reset"), httpcore.PoolTimeout("busy"), httpcore.RemoteProtocolError("half"), httpcore.ProxyError("407"),
            anyio.BrokenResourceError(), anyio.ClosedResourceError(), anyio.EndOfStream(),
        ):
            base = Interrupted(failing(error))
            with self.subTest(repr(error)), httpx.Client(transport=IdempotencyTransport(Config(), base, pause=lambda _: None)) as http:
                self.assertEqual(http.post(URL).text, "paid")
                self.assertEqual((len(base.keys), len(set(base.keys))), (2, 1))
