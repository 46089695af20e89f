"""How much of an answer is held. Run where the built wheel is installed."""

import base64
import gzip
import tracemalloc
import unittest
import zlib
from collections.abc import Callable

import httpx

import idem_client
from idem_client import Config, IdempotencyTransport

URL = "https://api.example/v1/payments"
GZIP = {"Content-Encoding": "gzip"}


class Serving(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Answers with what the list has next, as bytes of a stream."""

    def __init__(self, *answers: tuple[int, dict[str, str], bytes]) -> None:
        self.answers = list(answers)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        status, headers, body = self.answers.pop(0)
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.handle_request(request)


class Bounds(unittest.IsolatedAsyncioTestCase):
    async def ends(self, bytes_max: int, *answers: tuple[int, dict[str, str], bytes]) -> list[tuple[str, type[object]]]:
        """What a POST and the way to its end come to with both transports: the reason and the cause."""
        got = []
        config = Config(answer_bytes_max=bytes_max, attempts_max=2)
        transport = IdempotencyTransport(config, Serving(*answers), pause=lambda _: None)
        with httpx.Client(transport=transport) as http, self.assertRaises(idem_client.GaveUpError) as ended:
            transport.await_final(http.post(URL))
        got.append(ended.exception)

        async def at_once(_: float) -> None:
            return None

        asynchronous = idem_client.AsyncIdempotencyTransport(config, Serving(*answers), pause=at_once)
        async with httpx.AsyncClient(transport=asynchronous) as client:
            with self.assertRaises(idem_client.GaveUpError) as ended:
                await asynchronous.await_final(await client.post(URL))
        got.append(ended.exception)
        return [(error.reason, type(error.__cause__)) for error in got]

    async def test_a_compressed_answer_is_bounded_by_what_it_is_without(self) -> None:
        long = b"0123456789" * 1000
        too_long = [("permanent", idem_client.AnswerTooLongError)] * 2
        deflated = {"Content-Encoding": "deflate"}
        self.assertEqual(await self.ends(1000, (201, GZIP, gzip.compress(long))), too_long)
        self.assertEqual(await self.ends(9999, (201, GZIP, gzip.compress(long))), too_long)
        self.assertEqual(await self.ends(1000, (201, deflated, zlib.compress(long))), too_long)
        marked = {**GZIP, "Idempotency-Status": "unprotected"}
        self.assertEqual(await self.ends(1000, (201, marked, gzip.compress(long))), [("unprotected", idem_client.AnswerTooLongError)] * 2)
        place = (202, {"Location": "/v1/operations/1"}, b"")
        status = b'{"state":"pending"}'.ljust(10_000)
        self.assertEqual(await self.ends(1000, place, (200, GZIP, gzip.compress(status))), too_long)
        kept = base64.b64encode(gzip.compress(long)).decode()
        final = '{"state":"completed","response":{"status":201,"headers":{"Content-Encoding":"gzip"},"body":"%s","body_encoding":"base64"}}' % kept
        self.assertEqual(await self.ends(1000, place, (200, {}, final.encode())), too_long)

    def test_one_of_as_many_bytes_as_there_may_be_is_handed_over(self) -> None:
        whole = b"0123456789" * 1000
        packed: list[tuple[str, Callable[[bytes], bytes]]] = [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity, GZIP", gzip.compress), ("identity", bytes)]
        for coding, pack in packed:
            serving = Serving((201, {"Content-Encoding": coding}, pack(whole)))
            with self.subTest(coding), httpx.Client(transport=IdempotencyTransport(Config(answer_bytes_max=10_000), serving)) as http:
                self.assertEqual(http.post(URL).content, whole)

    def test_no_more_is_held_than_there_may_be(self) -> None:
        bomb = gzip.compress(bytes(64 << 20), 1)
        transport = IdempotencyTransport(Config(answer_bytes_max=1 << 20), Serving((201, GZIP, bomb)))
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        with httpx.Client(transport=transport) as http, self.assertRaises(idem_client.GaveUpError):
            http.post(URL)
        self.assertLess(tracemalloc.get_traced_memory()[1], 16 << 20)

    async def test_one_that_is_compressed_twice_is_lost(self) -> None:
        twice = (201, {"Content-Encoding": "gzip, gzip"}, gzip.compress(gzip.compress(b"paid")))
        self.assertEqual(await self.ends(1000, twice, twice), [("attempts", httpx.DecodingError)] * 2)
