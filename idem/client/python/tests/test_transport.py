"""What the scenarios don't show: streams, cancellation, redirects, journals. Run where the built wheel is installed."""

import asyncio
import errno
import fcntl
import gzip
import http.server
import json
import logging
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import httpx

import idem_client
from idem_client import Config, Entry, FileJournal, IdempotencyTransport, MemoryJournal

URL = "https://api.example/v1/payments"
Reply = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Answering(httpx.BaseTransport):
    """Answers with what the list has next, and keeps what it was asked."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.asked.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply(request) if callable(reply) else reply

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("Idempotency-Key") for request in self.asked]


def client(base: Answering, follow_redirects: bool = False, **settings: object) -> httpx.Client:
    transport = IdempotencyTransport(Config(**settings), base, pause=lambda _: None)  # type: ignore[arg-type]
    return httpx.Client(transport=transport, follow_redirects=follow_redirects)


class Bodies(unittest.TestCase):
    def test_a_stream_is_kept_and_sent_again_as_bytes(self) -> None:
        base = Answering(httpx.Response(503), httpx.Response(201))

        def parts() -> Iterator[bytes]:
            yield b"one"
            yield b"two"

        client(base).post(URL, content=parts())
        self.assertEqual([request.content for request in base.asked], [b"onetwo"] * 2)
        self.assertEqual([(r.headers.get("Content-Length"), r.headers.get("Transfer-Encoding")) for r in base.asked], [("6", None)] * 2)

    def test_a_form_with_a_file_is_the_same_in_each_attempt(self) -> None:
        base = Answering(httpx.Response(503), httpx.Response(201))
        client(base).post(URL, files={"file": b"content"})
        self.assertEqual(base.asked[0].content, base.asked[1].content)
        self.assertIn(b"content", base.asked[0].content)

    def test_a_stream_that_is_too_long_is_refused_and_nothing_is_sent(self) -> None:
        base = Answering()
        for headers in ({}, {"Content-Length": "11"}):
            with self.assertRaises(idem_client.BodyRefusedError) as refused:
                client(base, body_bytes_max=10).post(URL, content=iter([b"12345", b"678901"]), headers=headers)
            self.assertEqual(refused.exception.code, "body_refused")
        self.assertEqual(base.asked, [])

    def test_a_stream_that_is_too_long_proves_nothing_about_an_earlier_call(self) -> None:
        base = Answering()
        for unknown, named in ((False, {}), (True, {"extensions": idem_client.operation("a")}), (True, {"extensions": idem_client.with_key("k")}), (True, {"headers": {"Idempotency-Key": "k"}})):
            with self.assertRaises(idem_client.BodyRefusedError) as refused:
                client(base, body_bytes_max=10).post(URL, content=iter([b"12345", b"678901"]), **named)
            self.assertEqual((refused.exception.unknown, "earlier" in str(refused.exception)), (unknown, unknown))
        self.assertEqual(base.asked, [])

    def test_an_answer_of_too_many_bytes_is_not_asked_for_again(self) -> None:
        base = Answering(httpx.Response(201, content=b"x" * 11))
        with self.assertRaises(idem_client.GaveUpError) as ended:
            client(base, answer_bytes_max=10).post(URL)
        self.assertEqual(ended.exception.reason, "permanent")
        self.assertIsInstance(ended.exception.__cause__, idem_client.AnswerTooLongError)

    def test_a_compressed_answer_is_read_by_the_rules_and_handed_over_whole(self) -> None:
        problem = gzip.compress(json.dumps({"code": "idempotency_key_in_progress"}).encode())
        headers = {"Content-Type": "application/problem+json", "Content-Encoding": "gzip"}
        base = Answering(
            httpx.Response(409, headers=headers, stream=httpx.ByteStream(problem)),
            httpx.Response(201, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(gzip.compress(b"paid"))),
        )
        self.assertEqual(client(base).post(URL).text, "paid")
        self.assertEqual(len(base.asked), 2)


class Keys(unittest.TestCase):
    def test_a_redirect_that_is_followed_keeps_the_key(self) -> None:
        base = Answering(httpx.Response(307, headers={"Location": "/v2/payments"}), httpx.Response(201))
        answer = client(base, follow_redirects=True).post(URL, json={})
        self.assertEqual(len(set(base.keys)), 1)
        self.assertEqual(base.keys[1], f'"{idem_client.key_of(answer)}"')

    def test_an_error_of_a_redirect_that_is_followed_is_unknown(self) -> None:
        base = Answering(httpx.Response(303, headers={"Location": "/elsewhere"}), httpx.ConnectError("a bad certificate"))
        with self.assertRaises(idem_client.GaveUpError) as ended:
            client(base, follow_redirects=True).post(URL, json={})
        self.assertEqual([request.method for request in base.asked], ["POST", "GET"])
        self.assertEqual(base.keys[0], f'"{ended.exception.key}"')
        self.assertIsInstance(ended.exception.__cause__, httpx.ConnectError)
        with self.assertRaises(httpx.ConnectError):
            client(Answering(httpx.ConnectError("down"))).get(URL)

    def test_a_login_page_after_a_lost_attempt_is_no_answer(self) -> None:
        base = Answering(httpx.ReadError("lost"), httpx.Response(302, headers={"Location": "/login"}))
        with self.assertRaises(idem_client.GaveUpError) as ended:
            client(base, follow_redirects=True).post(URL, json={})
        self.assertEqual((ended.exception.reason, ended.exception.status), ("unproven", 302))

    def test_a_stored_answer_is_told_from_one_that_decides_nothing(self) -> None:
        def problem(status: int, code: str, **headers: str) -> httpx.Response:
            return httpx.Response(status, json={"code": code}, headers={"Content-Type": "application/problem+json", **{name.replace("_", "-"): value for name, value in headers.items()}})

        for answer, stored in (
            (problem(502, "provider_unavailable", Idempotent_Replayed="true"), True),
            (problem(408, "operation_abandoned", Idempotency_Expires="2030-01-01T00:00:00Z"), True),
            (problem(500, "idempotency_response_not_kept"), True),
            (problem(410, "idempotency_response_erased"), True),
            (problem(500, "idempotency_response_not_kept", Idempotency_Status="unprotected"), False),
            (httpx.Response(202, headers={"Idempotent-Replayed": "true"}), False),
            (httpx.Response(201), False),
            (httpx.Response(401), False),
        ):
            self.assertIs(idem_client.stored(client(Answering(answer)).post(URL, json={})), stored, answer)

    def test_the_same_request_sent_again_has_the_same_key_and_another_has_not(self) -> None:
        base = Answering(httpx.Response(201), httpx.Response(201), httpx.Response(201))
        http = client(base)
        request = http.build_request("POST", URL, json={})
        http.send(request)
        http.send(request)
        http.post(URL, json={})
        self.assertEqual(base.keys[0], base.keys[1])
        self.assertNotEqual(base.keys[1], base.keys[2])

    def test_a_key_in_the_header_is_read_as_a_server_reads_it(self) -> None:
        for line, key in {"order-17": "order-17", '"order-17"': "order-17", '"a\\"b\\\\c"': 'a"b\\c'}.items():
            answer = client(Answering(httpx.Response(201))).post(URL, headers={"Idempotency-Key": line})
            self.assertEqual(idem_client.key_of(answer), key)
        for line in ("", "a,b", 'a"b', '"a', '"a" b', '"a";b=1', '"\\x"'):
            with self.assertRaises(idem_client.KeyRefusedError):
                client(Answering()).post(URL, headers={"Idempotency-Key": line})
        with self.assertRaises(idem_client.KeyRefusedError):
            client(Answering()).post(URL, headers={"Idempotency-Key": "a"}, extensions=idem_client.with_key("b"))

    def test_without_a_key_a_request_is_sent_once_as_it_is(self) -> None:
        base = Answering(httpx.Response(503))
        self.assertEqual(client(base).post(URL, extensions=idem_client.without_key()).status_code, 503)
        self.assertEqual(base.keys, [None])

    def test_a_minted_key_is_a_uuid7_that_carries_the_time(self) -> None:
        key = uuid.UUID(idem_client.key_of(client(Answering(httpx.Response(201)), now=lambda: 1795262400.25).post(URL)))
        self.assertEqual((key.version, key.variant, key.int >> 80), (7, uuid.RFC_4122, 1795262400250))

    def test_neither_an_error_nor_the_log_shows_the_key_or_a_body(self) -> None:
        problem = {"code": "idempotency_key_reused_with_different_payload", "title": "secret-title"}
        base = Answering(httpx.Response(503, text="secret-body"), httpx.Response(422, json=problem, headers={"Content-Type": "application/problem+json"}))
        with self.assertLogs("idem_client", logging.DEBUG) as logs, self.assertRaises(idem_client.MismatchError) as ended:
            client(base).post(URL, content=b"secret-request", extensions=idem_client.with_key("secret-key"))
        self.assertEqual(ended.exception.key, "secret-key")
        self.assertNotIn("secret", f"{ended.exception} {ended.exception!r} {logs.output}")


class Ends(unittest.TestCase):
    def test_what_httpx_can_not_send_is_its_own_error(self) -> None:
        error = httpx.UnsupportedProtocol("no such scheme")
        base = Answering(error)
        with self.assertRaises(httpx.UnsupportedProtocol):
            client(base).post(URL)
        self.assertEqual(len(base.asked), 1)

    def test_a_certificate_that_is_not_trusted_is_httpxs_own_error_and_nothing_was_sent(self) -> None:
        error = httpx.ConnectError("certificate verify failed")
        error.__cause__ = ssl.SSLCertVerificationError("unable to get local issuer certificate")
        base = Answering(error)
        with self.assertRaises(httpx.ConnectError):
            client(base).post(URL)
        self.assertEqual(len(base.asked), 1)

    def test_what_a_real_server_with_such_a_certificate_makes_of_it(self) -> None:
        async def post(url: str) -> httpx.Response:
            async with httpx.AsyncClient(transport=idem_client.AsyncIdempotencyTransport()) as http:
                return await http.post(url)

        url = Path(__file__).with_name("untrusted.url").read_text()  # written by the test in Go that runs this one
        with self.assertRaises(httpx.ConnectError):
            with httpx.Client(transport=IdempotencyTransport()) as http:
                http.post(url)
        with self.assertRaises(httpx.ConnectError):
            asyncio.run(post(url))

    def test_another_hosts_certificate_proves_nothing_about_a_request_that_is_sent_while_its_error_is_handled(self) -> None:
        for lost in (httpx.ReadError("lost"), httpx.ConnectError("refused")):
            base = Answering(lost, httpx.Response(201, text="paid"))
            try:
                try:
                    raise ssl.SSLCertVerificationError("certificate verify failed")
                except ssl.SSLError as cause:
                    raise httpx.ConnectError("the first host") from cause
            except httpx.ConnectError:
                self.assertEqual(client(base).post(URL).text, "paid")
                with self.assertRaises(idem_client.GaveUpError) as ended:
                    client(Answering(lost), attempts_max=1).post(URL)
            self.assertIsNotNone(lost.__context__)
            self.assertEqual((ended.exception.reason, ended.exception.unknown), ("attempts", True))
            self.assertEqual(base.keys[0], base.keys[1])

    def test_the_last_error_is_the_cause(self) -> None:
        with self.assertRaises(idem_client.GaveUpError) as ended:
            client(Answering(httpx.ReadError("cut")), attempts_max=1).post(URL)
        self.assertIsInstance(ended.exception.__cause__, httpx.ReadError)
        self.assertTrue(ended.exception.unknown)

    def test_a_dripping_answer_is_bounded(self) -> None:
        gone = threading.Event()

        class Dripping(httpx.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                while not gone.wait(0.02):
                    yield b"."

        base = Answering(httpx.Response(201, stream=Dripping()), httpx.Response(201, text="paid"))
        self.assertEqual(client(base, attempt_timeout=0.5).post(URL).text, "paid")
        gone.set()

    def test_settings_that_can_not_be_are_refused(self) -> None:
        for settings in ({"attempts_max": 0}, {"elapsed_max": -1.0}, {"backoff_base": 30.0}, {"key_age_max": 60.0}, {"syntax": "loose"}, {"base_url": "https://api.example/"}, {"base_url": "/v1"}):
            with self.assertRaises(idem_client.ConfigError) as refused:
                Config(**settings)
            self.assertIn(next(iter(settings)), str(refused.exception))

    def test_a_bound_that_is_no_positive_number_is_refused(self) -> None:
        names = ("key_age_max", "attempts_max", "elapsed_max", "attempt_timeout", "backoff_base", "backoff_max", "retry_after_max", "await_max", "body_bytes_max", "answer_bytes_max")
        values: tuple[object, ...] = (None, "8", True, float("nan"), float("inf"), 0, -1, [])
        whole: list[tuple[str, object]] = [("attempts_max", 1.5), ("body_bytes_max", 0.5), ("answer_bytes_max", 0.5)]
        other: list[tuple[str, object]] = [("send_first_sent", "no"), ("base_url", 7), ("syntax", None)]
        for name, value in [(name, value) for name in names for value in values] + whole + other:
            with self.subTest(name=name, value=value), self.assertRaises(idem_client.ConfigError) as refused:
                Config(**{name: value})  # type: ignore[arg-type]
            self.assertIn(name, str(refused.exception))

    def test_a_journals_bound_that_is_no_positive_number_is_refused(self) -> None:
        for value in (None, "8", 0, -1, 1.5, True):
            with self.subTest(value=value), self.assertRaises(idem_client.ConfigError):
                MemoryJournal(value)  # type: ignore[arg-type]


class Ages(unittest.TestCase):
    def test_a_request_that_is_sent_again_has_the_age_of_its_key(self) -> None:
        now = [1_800_000_000.0]
        base = Answering(*[httpx.Response(503)] * 3)
        c = client(base, now=lambda: now[0], attempts_max=1, send_first_sent=True)
        request = c.build_request("POST", URL, json={})
        for _ in range(2):
            with self.assertRaises(idem_client.GaveUpError):
                c.send(request)
            now[0] += 3600
        self.assertEqual(len(set(base.keys)), 1)
        self.assertEqual({sent.headers.get("Idempotency-First-Sent") for sent in base.asked}, {"2027-01-15T08:00:00Z"})
        now[0] += 30 * 3600
        with self.assertRaises(idem_client.ExpiredError):
            c.send(request)
        self.assertEqual(len(base.asked), 2)

    def test_a_given_key_is_as_old_as_its_request(self) -> None:
        now = [1_800_000_000.0]
        base = Answering(httpx.Response(503))
        c = client(base, now=lambda: now[0], attempts_max=1)
        request = c.build_request("POST", URL, json={}, headers={"Idempotency-Key": '"order-17"'})
        with self.assertRaises(idem_client.GaveUpError):
            c.send(request)
        now[0] += 30 * 3600
        with self.assertRaises(idem_client.ExpiredError):
            c.send(request)


class Cancellation(unittest.IsolatedAsyncioTestCase):
    async def test_a_cancelled_task_stays_cancelled_and_the_journal_has_the_key(self) -> None:
        reached = asyncio.Event()

        class Hanging(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                self.line = request.headers["Idempotency-Key"]
                reached.set()
                await asyncio.sleep(3600)
                raise AssertionError

        base, journal = Hanging(), MemoryJournal()
        http = httpx.AsyncClient(transport=idem_client.AsyncIdempotencyTransport(Config(journal=journal), base))
        task = asyncio.create_task(http.post(URL, extensions=idem_client.operation("order-17")))
        await reached.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        kept, resumed = journal.begin("order-17", Entry("another", 0.0))
        self.assertEqual((f'"{kept.key}"', resumed), (base.line, True))

    async def test_an_asynchronous_stream_is_kept_and_a_long_one_refused(self) -> None:
        asked: list[bytes] = []

        class Base(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                asked.append(await request.aread())
                return httpx.Response(201 if len(asked) == 2 else 503)

        async def parts() -> AsyncIterator[bytes]:
            yield b"one"
            yield b"two"

        async def no_time(_: float) -> None:
            return None

        for most, settled in ((6, True), (5, False)):
            transport = idem_client.AsyncIdempotencyTransport(Config(body_bytes_max=most), Base(), pause=no_time)
            async with httpx.AsyncClient(transport=transport) as http:
                if settled:
                    self.assertEqual((await http.post(URL, content=parts())).status_code, 201)
                else:
                    with self.assertRaises(idem_client.BodyRefusedError):
                        await http.post(URL, content=parts())
        self.assertEqual(asked, [b"onetwo"] * 2)

    async def test_the_asynchronous_client_sends_by_base_url(self) -> None:
        asked: list[httpx.Request] = []

        class Base(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                asked.append(request)
                final = {"state": "completed", "response": {"status": 201, "headers": {}, "body": "paid"}}
                return httpx.Response(202, headers={"Location": "/v1/operations/1", "Retry-After": "1"}) if len(asked) == 1 else httpx.Response(200, json=final)

        async with idem_client.AsyncClient("https://api.example/prod", Config(journal=MemoryJournal()), headers={"Authorization": "Bearer t"}, base=Base()) as api:
            accepted = await api.post("/v1/payments", json={}, operation="order-17")
            final = await api.await_final(accepted)
            self.assertEqual((final.text, idem_client.stored(accepted), idem_client.stored(final)), ("paid", False, True))
            await api.done("order-17", idem_client.key_of(final))
        self.assertEqual([str(r.url) for r in asked], ["https://api.example/prod/v1/payments", "https://api.example/prod/v1/operations/1"])
        self.assertEqual(asked[1].headers["Authorization"], "Bearer t")


class Torn(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that breaks off."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __iter__(self) -> Iterator[bytes]:
        yield b"half"
        raise self.error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"half"
        raise self.error


class Unread(unittest.IsolatedAsyncioTestCase):
    """What httpx would raise by itself, and without the key, while it reads an answer or looks where it leads."""

    BROKEN = {"Content-Encoding": "gzip"}

    async def ends(self, *replies: Callable[[], httpx.Response], follow_redirects: bool = True) -> list[tuple[str, int]]:
        """What a POST ends with that has these answers, with both transports: it must be a GaveUpError with the key."""

        class Async(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                return base.handle_request(request)

        async def at_once(_: float) -> None:
            return None

        ends = []
        base = Answering(*[reply() for reply in replies])
        with self.assertRaises(idem_client.GaveUpError) as ended:
            client(base, follow_redirects, attempts_max=2).post(URL, json={})
        ends.append((ended.exception, base))
        base = Answering(*[reply() for reply in replies])
        transport = idem_client.AsyncIdempotencyTransport(Config(attempts_max=2), base=Async(), pause=at_once)
        async with httpx.AsyncClient(transport=transport, follow_redirects=follow_redirects) as http:
            with self.assertRaises(idem_client.GaveUpError) as ended:
                await http.post(URL, json={})
        ends.append((ended.exception, base))
        for error, base in ends:
            self.assertEqual((base.keys[0], base.replies, error.unknown), (f'"{error.key}"', [], True))
        return [(error.reason, error.status) for error, _ in ends]

    async def test_a_page_that_breaks_off_after_a_redirect_is_unknown(self) -> None:
        pages: dict[str, tuple[Callable[[], httpx.Response], str]] = {
            "torn": (lambda: httpx.Response(200, stream=Torn(httpx.ReadError("reset"))), "attempts"),
            "silent": (lambda: httpx.Response(200, stream=Torn(httpx.ReadTimeout("silent"))), "attempts"),
            "incomplete": (lambda: httpx.Response(200, stream=Torn(httpx.RemoteProtocolError("incomplete"))), "attempts"),
            "not gzip": (lambda: httpx.Response(200, headers=self.BROKEN, stream=httpx.ByteStream(b"plain")), "attempts"),
            "leads nowhere": (lambda: httpx.Response(302, headers={"Location": "http://[::1"}), "permanent"),
        }
        for name, (page, reason) in pages.items():
            with self.subTest(name):
                ends = await self.ends(lambda: httpx.Response(303, headers={"Location": "/elsewhere"}), page)
                self.assertEqual([end[0] for end in ends], [reason] * 2)

    async def test_an_answer_that_can_not_be_decoded_is_lost(self) -> None:
        def answer() -> httpx.Response:
            return httpx.Response(201, headers=self.BROKEN, stream=httpx.ByteStream(b"plain"))

        self.assertEqual(await self.ends(answer, answer), [("attempts", 0)] * 2)
        whole = httpx.Response(201, headers=self.BROKEN, stream=httpx.ByteStream(gzip.compress(b"paid")))
        self.assertEqual(client(Answering(answer(), whole)).post(URL).text, "paid")

    async def test_a_torn_answer_whose_key_protects_nothing_is_not_sent_again(self) -> None:
        for said in ("unprotected", "ignored", "executed, ignored"):  # the last one is of two servers behind one another
            marked = {"Idempotency-Status": said}
            for answer in (
                lambda: httpx.Response(201, headers=marked, stream=Torn(httpx.ReadError("reset"))),
                lambda: httpx.Response(201, headers={**marked, **self.BROKEN}, stream=httpx.ByteStream(b"plain")),
            ):
                self.assertEqual(await self.ends(answer), [("unprotected", 201)] * 2)
            long = Answering(httpx.Response(201, headers=marked, content=b"x" * 11))
            with self.assertRaises(idem_client.GaveUpError) as ended:
                client(long, answer_bytes_max=10).post(URL)
            self.assertEqual((ended.exception.reason, ended.exception.status, len(long.asked)), ("unprotected", 201, 1))
            self.assertIsInstance(ended.exception.__cause__, idem_client.AnswerTooLongError)

    async def test_an_unprotected_redirect_that_leads_nowhere_is_not_sent_again(self) -> None:
        def redirect(place: str) -> httpx.Response:
            return httpx.Response(303, headers={"Location": place, "Idempotency-Status": "unprotected"})

        ends = await self.ends(lambda: redirect("/elsewhere"), lambda: httpx.Response(200, stream=Torn(httpx.ReadError("reset"))))
        self.assertEqual([reason for reason, _ in ends], ["unprotected"] * 2)
        self.assertEqual(await self.ends(lambda: redirect("http://[::1")), [("unprotected", 303)] * 2)

    async def test_a_202_whose_key_protects_nothing_is_not_sent_again_whatever_ended_the_wait(self) -> None:
        place = {"Location": "/v1/operations/1"}
        waits = httpx.Response(200, json={"state": "unknown"}, headers={"Retry-After": "20"})
        cases: list[tuple[dict[str, str], list[Reply]]] = [({}, []), (place, [httpx.Response(401)]), (place, [waits])]
        for headers, rest in cases:
            accepted = httpx.Response(202, headers={**headers, "Idempotency-Status": "unprotected"})
            transport = IdempotencyTransport(Config(await_max=10.0), Answering(accepted, *rest), pause=lambda _: None)
            with httpx.Client(transport=transport) as http, self.assertRaises(idem_client.GaveUpError) as ended:
                transport.await_final(http.post(URL))
            self.assertEqual(ended.exception.reason, "unprotected")

    async def test_a_final_response_that_can_not_be_decoded_is_no_status(self) -> None:
        status = {"state": "completed", "response": {"status": 201, "headers": self.BROKEN, "body": "plain"}}
        transport = IdempotencyTransport(Config(), Answering(httpx.Response(202, headers={"Location": "/v1/operations/1"}), httpx.Response(200, json=status)), pause=lambda _: None)
        with httpx.Client(transport=transport) as http, self.assertRaises(idem_client.GaveUpError) as ended:
            transport.await_final(http.post(URL))
        self.assertEqual(ended.exception.reason, "permanent")

    async def test_a_redirect_to_what_is_no_url_is_unknown(self) -> None:
        for place in ("http://[::1", "mailto:somebody@example", "http://xn--/", "/" + "x" * 70_000):
            for follow in (False, True):
                for kept in ({}, {"Idempotency-Expires": "1800000000"}):
                    with self.subTest(place=place[:20], follow=follow, kept=kept):
                        ends = await self.ends(lambda: httpx.Response(303, headers={"Location": place, **kept}), follow_redirects=follow)
                        self.assertEqual(ends, [("permanent", 303)] * 2)


class Challenge(httpx.Auth):
    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        response = yield request
        if response.status_code == 401:
            request.headers["Authorization"] = "Bearer fresh"
            yield request


class Authentication(unittest.TestCase):
    def test_a_second_401_of_an_auth_flow_is_an_answer_where_nothing_can_have_happened(self) -> None:
        for named in ({}, idem_client.operation("order-17/charge")):
            base = Answering(httpx.Response(401), httpx.Response(401))
            answer = client(base, journal=MemoryJournal()).post(URL, extensions=named, auth=Challenge())
            self.assertEqual(answer.status_code, 401)
            self.assertEqual(len(set(base.keys)), 1)

    def test_a_401_of_an_auth_flow_after_an_attempt_that_may_have_happened_is_unknown(self) -> None:
        base = Answering(httpx.Response(401), httpx.ReadError("lost"), httpx.Response(401))
        with self.assertRaises(idem_client.GaveUpError) as ended:
            client(base).post(URL, auth=Challenge())
        self.assertEqual(ended.exception.reason, "refused")


class Clocks(unittest.TestCase):
    def test_a_jump_of_the_wall_clock_neither_ends_nor_prolongs_an_operation_unless_its_key_is_too_old_then_or_of_unknown_age(self) -> None:
        date, passed = [1795262400.0], [0.0]

        def pays(jump: float, passes: float) -> httpx.Response:
            def pause(_: float) -> None:
                date[0] += jump
                passed[0] += passes

            config = Config(now=lambda: date[0], monotonic=lambda: passed[0], elapsed_max=60.0)
            base = Answering(httpx.Response(503), httpx.Response(503), httpx.Response(201))
            return httpx.Client(transport=IdempotencyTransport(config, base, pause=pause)).post(URL)

        self.assertEqual(pays(3600.0, 1.0).status_code, 201)
        with self.assertRaises(idem_client.GaveUpError) as ended:
            pays(-120.0, 61.0)
        self.assertEqual((ended.exception.reason, ended.exception.attempts), ("elapsed", 2))
        # The machine was suspended for as long as the server keeps a key: sent again, it might execute anew.
        with self.assertRaisesRegex(idem_client.ExpiredError, "too old") as expired:
            pays(86400.0, 1.0)
        self.assertEqual((expired.exception.unknown, expired.exception.status), (True, 0))
        # The date was wrong when the key was made, or is wrong now.
        with self.assertRaisesRegex(idem_client.ExpiredError, "lies ahead") as expired:
            pays(-121.0, 1.0)
        self.assertEqual((expired.exception.unknown, expired.exception.status), (True, 0))


class Server:
    """Reads requests and answers none of them."""

    def __init__(self, test: unittest.TestCase) -> None:
        arrived: list[bytes] = []
        over = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                arrived.append(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/silent":
                    over.wait()
                self.close_connection = True

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        for close in (server.server_close, thread.join, server.shutdown, over.set):
            test.addCleanup(close)
        self.arrived = arrived
        self.url = f"http://127.0.0.1:{server.server_port}"


class Suspended(unittest.IsolatedAsyncioTestCase):
    """The second attempt connects while the machine sleeps, and wakes when the server's record may be gone."""

    def setUp(self) -> None:
        self.server, self.connected, self.traced = Server(self), 0, list[str]()
        self.config = Config(now=lambda: 1_800_000_000.0 + (25 * 3600.0 if self.connected > 1 else 0.0))

    def held_back(self, ended: idem_client.ExpiredError) -> None:
        self.assertRegex(str(ended), "too old")
        self.assertEqual((self.server.arrived, self.connected), ([b"{}"], 2))
        self.assertEqual(sum(name.endswith("send_request_headers.complete") for name in self.traced), 1)

    def test_a_key_that_grows_too_old_while_it_connects_is_not_sent(self) -> None:
        connect = socket.create_connection

        def slowly(*arguments: Any, **named: Any) -> socket.socket:
            self.connected += 1
            return connect(*arguments, **named)

        def trace(name: str, _: Any) -> None:
            self.traced.append(name)

        transport = IdempotencyTransport(self.config, pause=lambda _: None)
        with httpx.Client(transport=transport) as http, unittest.mock.patch("socket.create_connection", slowly):
            with self.assertRaises(idem_client.ExpiredError) as ended:
                http.post(self.server.url, content=b"{}", extensions={"trace": trace})
        self.held_back(ended.exception)

    async def test_a_key_that_grows_too_old_while_it_connects_asynchronously_is_not_sent(self) -> None:
        connect = anyio.connect_tcp

        async def slowly(*arguments: Any, **named: Any) -> Any:
            self.connected += 1
            return await connect(*arguments, **named)

        async def trace(name: str, _: Any) -> None:
            self.traced.append(name)

        async def no_time(_: float) -> None:
            return None

        transport = idem_client.AsyncIdempotencyTransport(self.config, pause=no_time)
        async with httpx.AsyncClient(transport=transport) as http:
            with unittest.mock.patch("anyio.connect_tcp", slowly), self.assertRaises(idem_client.ExpiredError) as ended:
                await http.post(self.server.url, content=b"{}", extensions={"trace": trace})
        self.held_back(ended.exception)


class Phases(unittest.TestCase):
    def setUp(self) -> None:
        self.passed = 0.0
        patched = unittest.mock.patch("idem_client.transport.time", unittest.mock.Mock(monotonic=lambda: self.passed))
        patched.start()
        self.addCleanup(patched.stop)

    def test_each_phase_has_what_is_left_of_the_attempt(self) -> None:
        left: list[dict[str, float]] = []

        def answer(request: httpx.Request) -> httpx.Response:
            for phase in ("connection.connect_tcp", "connection.start_tls", "http11.send_request_headers", "http11.receive_response_headers"):
                request.extensions["trace"](phase + ".started", {})
                left.append(dict(request.extensions["timeout"]))
                self.passed += 3.0 if len(left) < 4 else 0.5
                request.extensions["trace"](phase + ".complete", {})
            return httpx.Response(201)

        client(Answering(answer), attempt_timeout=10.0).post(URL, timeout=httpx.Timeout(8.0, connect=2.0))
        self.assertEqual([timeout["read"] for timeout in left], [8.0, 7.0, 4.0, 1.0])
        self.assertEqual([timeout["connect"] for timeout in left], [2.0, 2.0, 2.0, 1.0])

    def test_nothing_is_sent_once_the_time_is_over(self) -> None:
        def connects(request: httpx.Request) -> httpx.Response:
            self.passed += 10.0
            request.extensions["trace"]("http11.send_request_headers.started", {})
            raise AssertionError

        with self.assertRaises(idem_client.GaveUpError) as ended:
            client(Answering(connects), attempt_timeout=10.0, attempts_max=1).post(URL)
        self.assertIsInstance(ended.exception.__cause__, httpx.TimeoutException)

    def test_a_silent_server_is_waited_for_only_as_long_as_the_connecting_left(self) -> None:
        connect, server, began = socket.create_connection, Server(self), time.monotonic()

        def slowly(*arguments: Any, **named: Any) -> socket.socket:
            self.passed += 59.9
            return connect(*arguments, **named)

        transport = IdempotencyTransport(Config(attempt_timeout=60.0, attempts_max=1))
        with httpx.Client(transport=transport, timeout=None) as http, unittest.mock.patch("socket.create_connection", slowly):
            with self.assertRaises(idem_client.GaveUpError) as ended:
                http.post(server.url + "/silent", content=b"{}")
        self.assertIsInstance(ended.exception.__cause__, httpx.ReadTimeout)
        self.assertLess(time.monotonic() - began, 30.0)


class Journals(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def test_the_first_entry_stays_until_it_is_done(self) -> None:
        entry = Entry("k1", 1795262400.007)
        for journal in (MemoryJournal(), FileJournal(self.path)):
            self.assertEqual(journal.begin("a/../b", entry), (entry, False))
            kept, resumed = journal.begin("a/../b", Entry("k2", 1.0))
            self.assertEqual((kept.key, resumed), ("k1", True))
            self.assertAlmostEqual(kept.first_sent or 0.0, 1795262400.007, delta=0.002)
            journal.done("a/../b", "k1")
            journal.done("a/../b", "k1")
            self.assertEqual(journal.begin("a/../b", Entry("k3", 1.0))[0].key, "k3")

    def test_of_many_callers_at_once_all_get_the_same_key(self) -> None:
        for journal in (MemoryJournal(), FileJournal(self.path)):
            with ThreadPoolExecutor(16) as pool:
                begun = list(pool.map(lambda n: journal.begin("a", Entry(f"k{n}", 1.0)), range(32)))
            self.assertEqual(len({entry.key for entry, _ in begun}), 1)
            self.assertEqual([resumed for _, resumed in begun].count(False), 1)

    def test_a_full_one_refuses_the_request_and_nothing_is_sent(self) -> None:
        for journal in (MemoryJournal(1), FileJournal(self.path, 1)):
            journal.begin("a", Entry("k", 1.0))
            base = Answering()
            with self.assertRaises(idem_client.KeyRefusedError) as refused:
                client(base, journal=journal).post(URL, extensions=idem_client.operation("b"))
            cause = refused.exception.__cause__
            self.assertTrue(isinstance(cause, idem_client.JournalError) and cause.code == "journal_full")
            self.assertEqual(base.asked, [])

    def test_what_this_call_did_not_send_because_of_its_key_an_earlier_one_may_have(self) -> None:
        class Broken(MemoryJournal):
            def begin(self, operation: str, fresh: Entry) -> tuple[Entry, bool]:
                raise idem_client.JournalError("journal_unreadable", "torn")

        base, full = Answering(), MemoryJournal(1)
        full.begin("a", Entry("k1", time.time()))
        name, key = idem_client.operation, idem_client.with_key
        for unknown, journal, named in (
            (True, Broken(), name("b")),
            (True, None, name("b")),
            (False, full, name("b")),
            (True, full, {**name("b"), **key("k2")}),
            (True, full, {**name("a"), **key("k2")}),
            (False, full, name("")),
            (True, full, {**name(""), **key("k2")}),
            (False, full, key("schlüssel")),
            (True, full, {**name("a"), **key("schlüssel")}),
        ):
            with self.assertRaises(idem_client.KeyRefusedError) as refused:
                client(base, journal=journal).post(URL, extensions=named)
            self.assertEqual((refused.exception.unknown, "earlier" in str(refused.exception)), (unknown, unknown), named)
        self.assertEqual(base.asked, [])

    def test_a_file_that_is_no_entry_is_an_error(self) -> None:
        journal = FileJournal(self.path)
        journal.begin("a", Entry("k", 1.0))
        [file] = self.path.glob("*/*")
        for content in ("", "{", "null", "[]", '{"operation":"b","key":"k","first_sent":"2026-11-21T12:00:00Z"}', '{"operation":"a","key":"k","first_sent":7}'):
            file.write_text(content)
            with self.assertRaises(idem_client.JournalError) as refused:
                journal.begin("a", Entry("k2", 1.0))
            self.assertEqual(refused.exception.code, "journal_unreadable")
        file.unlink()
        file.parent.rmdir()
        file.parent.write_text('{"operation":"a","key":"k"}')  # as earlier commits did
        for ask in (lambda: journal.begin("a", Entry("k2")), lambda: journal.alone("a", "k"), lambda: journal.done("a", "k")):
            with self.assertRaises(NotADirectoryError):
                ask()
        FileJournal(self.path)
        self.assertEqual(list(self.path.iterdir()), [file.parent])

    def test_a_mark_that_a_power_cut_erased_is_a_mark_and_its_entry_is_there(self) -> None:
        journal = FileJournal(self.path)
        for mark in (b"\0", b"\n\0", b"\0\n", b"\0\0"):
            journal.begin("a", Entry("k", 1.0))
            [file] = self.path.glob("*/*")
            file.write_bytes(file.read_bytes() + mark)
            self.assertFalse(journal.alone("a", "k"))
            self.assertEqual(journal.begin("a", Entry("k2")), (Entry("k", 1.0), True))
            journal.done("a", "k")

    def test_the_first_caller_learns_of_a_second_one(self) -> None:
        for journal in (MemoryJournal(), FileJournal(self.path)):
            self.assertFalse(journal.alone("a", "k1"))
            journal.begin("a", Entry("k1"))
            self.assertEqual((journal.alone("a", "k1"), journal.alone("a", "k2")), (True, False))
            for _ in range(3):
                journal.begin("a", Entry("k2"))
                self.assertFalse(journal.alone("a", "k1"))
            journal.done("a", "k1")
            self.assertFalse(journal.alone("a", "k1"))
            journal.begin("a", Entry("k3"))
            self.assertEqual((journal.alone("a", "k1"), journal.alone("a", "k3")), (False, True))

    def test_a_late_done_leaves_the_next_operation_of_the_name(self) -> None:
        for journal in (MemoryJournal(), FileJournal(self.path)):

            def begin(key: str) -> tuple[str, bool]:
                entry, resumed = journal.begin("a", Entry(key))
                return entry.key, resumed

            self.assertEqual([begin("k1"), begin("another")], [("k1", False), ("k1", True)])
            journal.done("a", "k1")
            self.assertEqual(begin("k2"), ("k2", False))
            journal.done("a", "k1")
            self.assertTrue(journal.alone("a", "k2"))
            self.assertEqual(begin("k3"), ("k2", True))
            journal.done("a", "k2")
            self.assertEqual(begin("k3"), ("k3", False))
            with self.assertRaises(idem_client.KeyRefusedError):
                IdempotencyTransport(Config(journal=journal)).done("a", None)

    def test_two_processes_get_one_key_between_look_and_rename(self) -> None:
        second = "import idem_client, sys; print(idem_client.FileJournal(sys.argv[1]).begin('a', idem_client.Entry('second'))[0].key)"
        rename = os.rename

        def after_the_second(source: Path, target: Path) -> None:
            said = subprocess.run([sys.executable, "-I", "-c", second, str(self.path)], check=True, capture_output=True, text=True)
            self.assertEqual(said.stdout, "second\n")
            rename(source, target)

        journal = FileJournal(self.path)
        with unittest.mock.patch.object(os, "rename", after_the_second):
            entry, resumed = journal.begin("a", Entry("first"))
        self.assertEqual((entry.key, resumed, journal.alone("a", "second")), ("second", True, False))

    def test_one_that_another_caller_filled_with_the_same_operation_has_its_entry(self) -> None:
        journal, listdir, second = FileJournal(self.path, 1), os.listdir, list[tuple[Entry, bool]]()

        def after_the_second(path: Path) -> list[str]:
            if path == self.path and not second:
                second.append((Entry("second"), False))
                self.assertEqual([FileJournal(self.path, 1).begin("a", Entry("second"))], second)
            return listdir(path)

        with unittest.mock.patch.object(os, "listdir", after_the_second):
            entry, resumed = journal.begin("a", Entry("first"))
        self.assertEqual((entry.key, resumed, journal.alone("a", "second")), ("second", True, False))
        with self.assertRaises(idem_client.JournalError) as refused:
            journal.begin("b", Entry("third"))
        self.assertEqual(refused.exception.code, "journal_full")

    def test_a_directory_whose_maker_died_before_its_name_was_durable_is_made_durable(self) -> None:
        with unittest.mock.patch.object(os, "open", side_effect=os.open) as opened:
            FileJournal(self.path)
        self.assertEqual([call.args[0] for call in opened.call_args_list], [self.path.absolute().parent, self.path])

    def test_where_fsync_leaves_it_in_the_disks_memory_the_disk_is_told_to_keep_an_entry(self) -> None:
        """As on macOS."""
        for operation, fails, flushes in (("a", None, (5, 0)), ("b", OSError(errno.ENOTSUP, "not supported"), (5, 5))):
            with (
                unittest.mock.patch.object(fcntl, "F_FULLFSYNC", 51, create=True),
                unittest.mock.patch.object(fcntl, "fcntl", side_effect=fails) as full,
                unittest.mock.patch.object(os, "fsync") as plain,
            ):
                FileJournal(self.path).begin(operation, Entry("k"))
            self.assertEqual((full.call_count, plain.call_count), flushes)
            self.assertEqual({call.args[1] for call in full.call_args_list}, {51})

    def test_what_a_crash_left_does_not_fill_the_journal(self) -> None:
        path = self.path / "journal"
        journal = FileJournal(path, 1)
        left, removed, live = path / "begin-1", path / "begin-2-gone", path / "begin-3"
        for beside in (left, removed, live):
            beside.mkdir()
            (beside / "a.json").touch()
        for beside in (left, removed):
            os.utime(beside, (0.0, time.time() - 3660.0))
        self.assertFalse(journal.begin("a", Entry("k"))[1])
        with self.assertRaises(idem_client.JournalError):
            journal.begin("b", Entry("k"))
        FileJournal(path, 1)
        self.assertEqual([beside.name for beside in path.iterdir() if beside.name.startswith("begin-")], ["begin-3"])

    def test_a_crash_while_an_operation_ends_leaves_its_name_free(self) -> None:
        journal = FileJournal(self.path, 1)
        journal.begin("b", Entry("k1"))
        for ended in self.path.glob("*/*"):
            ended.unlink()
        journal.begin("a", Entry("k1"))  # its place is free, too
        for ended in self.path.glob("*/*"):
            ended.unlink()
        entry, resumed = journal.begin("a", Entry("k2"))
        self.assertEqual((entry.key, resumed), ("k2", False))
        for ended in self.path.glob("*/*"):
            ended.unlink()
        FileJournal(self.path)
        self.assertEqual(list(self.path.iterdir()), [])

    def test_a_relative_directory_which_is_another_one_elsewhere_is_refused(self) -> None:
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.path)
        for name in ("keys", Path("./keys"), "~/keys", "", f"{self.path}/link/../keys", self.path / "keys" / "..", f"/../{self.path}/keys"):
            with self.assertRaisesRegex(idem_client.ConfigError, "absolute"):
                FileJournal(name)
        self.assertEqual(list(self.path.iterdir()), [])

    def test_a_journal_is_made_in_a_directory_that_is_there_since_a_volume_that_is_missing_may_not_be_mounted(self) -> None:
        volume = self.path / "volume"
        path = volume / "shop" / "keys"
        for made in (None, volume):
            if made is not None:
                made.mkdir()
            with self.assertRaisesRegex(idem_client.ConfigError, "not mounted"):
                FileJournal(path)
        self.assertEqual(list(volume.iterdir()), [])
        path.parent.mkdir()
        for _ in range(2):
            FileJournal(path)

    def test_files_are_for_their_owner_alone(self) -> None:
        FileJournal(self.path / "keys").begin("a", Entry("k", 1.0))
        [file] = (self.path / "keys").glob("*/*")
        self.assertEqual([os.stat(name).st_mode & 0o777 for name in (file, file.parent, self.path / "keys")], [0o600, 0o700, 0o700])
        self.assertRegex(file.name, re.compile(r"^[0-9a-f]{64}\.json$"))


if __name__ == "__main__":
    unittest.main()
