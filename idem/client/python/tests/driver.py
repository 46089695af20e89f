"""Runs requests for a test that is written in another language: one line of JSON in, one line of JSON out, many at once.

The drivers of the three clients read and write the same; internal/clients says what. With the argument `async` the
asynchronous transport runs them.
"""

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import httpx

import idem_client


def config_of(task: dict[str, Any], now: Callable[[], float]) -> idem_client.Config:
    settings: dict[str, Any] = {}
    for name, value in task.get("options", {}).items():
        settings[name.removesuffix("_ms")] = value / 1000 if name.endswith("_ms") else value
    if task.get("journal"):
        settings["journal"] = idem_client.FileJournal(task["journal"])
    if task.get("clock_ms"):
        settings["now"] = settings["monotonic"] = now
    return idem_client.Config(**settings)


def extensions_of(task: dict[str, Any]) -> dict[str, Any]:
    named = idem_client.operation(task["operation"]) if "operation" in task else {}
    return {**named, **(idem_client.with_key(task["key"]) if "key" in task else {})}


class Clock:
    """A time of the task's own, which passes by the client's pauses only."""

    def __init__(self, start: float) -> None:
        self.time = start
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.time

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds * 1000)
        self.time += seconds

    async def pause_async(self, seconds: float) -> None:
        self.pause(seconds)


def run(task: dict[str, Any]) -> dict[str, Any]:
    clock = Clock(task.get("clock_ms", 0) / 1000)
    try:
        transport = idem_client.IdempotencyTransport(config_of(task, clock.now), pause=clock.pause if task.get("clock_ms") else time.sleep)
        with httpx.Client(transport=transport, timeout=None) as http:
            first = http.request(task["method"], task["url"], headers=task["headers"], content=task.get("body"), extensions=extensions_of(task))
            answer = transport.await_final(first) if task.get("await") else first
            if task.get("done"):
                transport.done(task["operation"], idem_client.key_of(answer))
            return told(first, answer, clock)
    except Exception as error:
        return ended(error, clock)


async def run_async(task: dict[str, Any]) -> dict[str, Any]:
    clock = Clock(task.get("clock_ms", 0) / 1000)
    try:
        pause = clock.pause_async if task.get("clock_ms") else anyio.sleep
        transport = idem_client.AsyncIdempotencyTransport(config_of(task, clock.now), pause=pause)
        async with httpx.AsyncClient(transport=transport, timeout=None) as http:
            first = await http.request(task["method"], task["url"], headers=task["headers"], content=task.get("body"), extensions=extensions_of(task))
            answer = await transport.await_final(first) if task.get("await") else first
            if task.get("done"):
                await transport.done(task["operation"], idem_client.key_of(answer))
            return told(first, answer, clock)
    except Exception as error:
        return ended(error, clock)


def told(first: httpx.Response, answer: httpx.Response, clock: Clock) -> dict[str, Any]:
    got = {"first": first.status_code, "status": answer.status_code, "headers": dict(answer.headers), "body": answer.text}
    return {"pauses_ms": clock.pauses, "key": idem_client.key_of(answer), "answer": got}


def ended(error: Exception, clock: Clock) -> dict[str, Any]:
    what: dict[str, Any] = {"code": getattr(error, "code", type(error).__name__), "unknown": getattr(error, "unknown", False)}
    for name in ("status", "problem_code", "reason", "attempts"):
        if getattr(error, name, ""):
            what[name] = getattr(error, name)
    if getattr(error, "retry_after", 0):
        what["retry_after_ms"] = error.retry_after * 1000  # type: ignore[attr-defined]
    key = error.key if isinstance(error, idem_client.IdempotencyError) else None
    return {"pauses_ms": clock.pauses, "key": key, "error": what, "told": f"{error} {error!r} {vars(error) if key is None else ''}"}


def work(line: str) -> None:
    task = json.loads(line)
    result = anyio.run(run_async, task) if "async" in sys.argv else run(task)
    sys.stdout.write(json.dumps({"id": task["id"], **result}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with ThreadPoolExecutor(64) as pool:
        for future in [pool.submit(work, line) for line in sys.stdin]:
            future.result()
