"""Errors that leave their process, as those of a worker in a pool do. Run where the built wheel is installed."""

import copy
import multiprocessing
import pickle
import unittest
from concurrent.futures import ProcessPoolExecutor

import httpx

import idem_client
from idem_client import Config, IdempotencyTransport

ERRORS: list[Exception] = [
    idem_client.MismatchError("secret-key", 422, "idempotency_error", False),
    idem_client.MismatchError("secret-key", 422, "", True),
    idem_client.OutcomeUnknownError("secret-key", 2.5),
    idem_client.ExpiredError("secret-key", 410),
    idem_client.ExpiredError("secret-key", 0, True),
    idem_client.GaveUpError("secret-key", "unprotected", 3, 503, "busy", 1.5),
    idem_client.KeyRefusedError("the rule", True),
    idem_client.BodyRefusedError("the rule"),
    idem_client.ConfigError("a setting"),
    idem_client.AnswerTooLongError("of more than 5 bytes"),
    idem_client.JournalError("journal_full", "it keeps 5 operations already"),
]


class _Lost(httpx.BaseTransport):
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("lost")


def pay(key: str) -> None:
    """What a worker runs, in a process of its own."""
    transport = IdempotencyTransport(Config(attempts_max=1), _Lost())
    httpx.Client(transport=transport).post("https://api.example/v1/payments", extensions=idem_client.with_key(key))


class Errors(unittest.TestCase):
    def test_an_error_is_the_same_after_pickling_and_as_a_copy(self) -> None:
        for error in ERRORS:
            error.note = "a caller's own"  # type: ignore[attr-defined]
            protocols = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
            for same in (*protocols, copy.copy(error), copy.deepcopy(error)):
                with self.subTest(repr(error)):
                    self.assertIs(type(same), type(error))
                    self.assertEqual((str(same), repr(same), same.args, vars(same)), (str(error), repr(error), error.args, vars(error)))
                    self.assertEqual((same.code, getattr(same, "key", None), getattr(same, "unknown", None)), (error.code, getattr(error, "key", None), getattr(error, "unknown", None)))  # type: ignore[attr-defined]
                    self.assertNotIn("secret", f"{same} {same!r}")

    def test_a_pool_of_processes_hands_a_workers_error_over_with_its_key(self) -> None:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool, self.assertRaises(idem_client.GaveUpError) as ended:
            pool.submit(pay, "k-17").result()
        self.assertEqual((ended.exception.key, ended.exception.reason, ended.exception.unknown), ("k-17", "attempts", True))

    def test_each_error_is_pickled_here(self) -> None:
        ours = {thing for name in idem_client.__all__ if isinstance(thing := getattr(idem_client, name), type) and issubclass(thing, Exception)}
        self.assertEqual(ours - {idem_client.IdempotencyError, idem_client.NotSentError}, {type(error) for error in ERRORS})
