"""The settings of a transport, and when it asks again."""

from __future__ import annotations

import math
import random as _random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import timezone
from email.utils import parsedate_to_datetime

import httpx

from .answer import values
from .errors import ConfigError, Reason
from .journal import Journal
from .key import Syntax


@dataclass(frozen=True, kw_only=True)
class Config:
    """Times are in seconds, sizes in bytes."""

    journal: Journal | None = None
    """Keeps the keys of named operations across restarts. Default: there are no named operations."""
    base_url: str | None = None
    """Where the API begins: the Location of a 202 is a path below it. Default: it is resolved against the request's URL."""
    syntax: Syntax = "structured"
    """How keys are written."""
    send_first_sent: bool = False
    """Sends Idempotency-First-Sent where the client knows that time: for keys that it made, journalled ones too, and for no
    key that was given. The server then refuses by itself what comes too late, when it has no record of it any more. It refuses a
    time that is more than two minutes ahead of its own."""
    key_age_max: float = 23 * 3600.0
    """How long after its first use a key is sent again, by the date; keep it below the server's retention. It is looked at before
    each attempt, and again once httpx has a connection. The age of a given key counts from when the journal, or this request, got
    it, and may be more."""
    attempts_max: int = 8
    """Bounds how often a request is tried."""
    elapsed_max: float = 120.0
    """Bounds the time after which no further attempt begins."""
    attempt_timeout: float = 35.0
    """Bounds one attempt of the asynchronous transport. Of the synchronous one it bounds each wait for a connection, after which
    nothing is sent once it is over, and each wait for writing and reading by what was left of it when that phase began. The
    default is longer than API Gateway waits. A shorter timeout of httpx stays as it is."""
    backoff_base: float = 0.2
    """With backoff_max it bounds the pause after the n-th attempt, which is drawn from [0, min(backoff_max,
    backoff_base * 2 ** (n - 1))]. A server's Retry-After is honoured exactly instead."""
    backoff_max: float = 20.0
    retry_after_max: float = 60.0
    """The longest Retry-After that is waited for; a longer one ends in a GaveUpError at once."""
    await_max: float = 300.0
    """Bounds await_final."""
    body_bytes_max: int = 256 << 10
    """Bounds the bodies that are streams, and so kept for another attempt."""
    answer_bytes_max: int = 8 << 20
    """Bounds an answer's body, as it came and decompressed. A longer one ends in a GaveUpError."""
    now: Callable[[], float] = field(default=time.time, repr=False)
    """The date, in seconds since 1970: for keys, the journal and dates in headers."""
    monotonic: Callable[[], float] = field(default=time.monotonic, repr=False)
    """Seconds that have passed, whatever the date is set to: for elapsed_max and await_max."""
    random: Callable[[], float] = field(default=_random.random, repr=False)

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            # Compared with the default's type: None or a string would fail later, or bound nothing.
            if isinstance(setting.default, bool):
                if not isinstance(value, bool):
                    raise ConfigError(f"{setting.name} = {value!r}: must be True or False")
            elif isinstance(setting.default, int):
                if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                    raise ConfigError(f"{setting.name} = {value!r}: must be a positive whole number")
            elif isinstance(setting.default, float):
                if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < math.inf:
                    raise ConfigError(f"{setting.name} = {value!r}: must be a positive number")
        if self.backoff_max < self.backoff_base:
            raise ConfigError(f"backoff_max = {self.backoff_max}: must be at least backoff_base = {self.backoff_base}")
        busy = self.elapsed_max + self.attempt_timeout
        if self.key_age_max <= busy:
            raise ConfigError(f"key_age_max = {self.key_age_max}: must be longer than elapsed_max + attempt_timeout = {busy}")
        if self.syntax not in ("structured", "opaque"):
            raise ConfigError(f"syntax = {self.syntax!r}: must be structured or opaque")
        if self.base_url is not None and not isinstance(self.base_url, str):
            raise ConfigError(f"base_url = {self.base_url!r}: must be a string")
        if self.base_url is not None and not re.fullmatch(r"https?://[^/?#]+(/[^?#]*[^/?#])?", self.base_url):
            raise ConfigError(f"base_url = {self.base_url}: must be an absolute URL without query and without a slash at its end")


class Pace:
    """One operation's attempts."""

    def __init__(self, config: Config, attempts_max: float, elapsed_max: float) -> None:
        self.attempts = 0
        self._config = config
        self._attempts_max = attempts_max
        self._elapsed_max = elapsed_max
        self._started = config.monotonic()

    def next(self, retry_after: float) -> float | Reason:
        """How long to pause before the next attempt, or why there is none: a pause that would end too late is not begun."""
        c = self._config
        if self.attempts >= self._attempts_max:
            return "attempts"
        if retry_after > c.retry_after_max:
            return "retry_after"
        # The exponent is bounded: await_final may ask so often that a float could not hold the power.
        ceiling = min(c.backoff_max, c.backoff_base * 2.0 ** min(max(0, self.attempts - 1), 64))
        pause = retry_after if retry_after > 0 else c.random() * ceiling
        return "elapsed" if c.monotonic() - self._started + pause > self._elapsed_max else pause


_RETRY_AFTER_MAX = float(2**31)  # what a longer one is read as


def retry_after_of(headers: httpx.Headers, now: float) -> float:
    """Reads Retry-After, seconds or an HTTP date (RFC 9110 section 10.2.3), in seconds from now: 0 where it is absent,
    malformed or no longer ahead, and the longest one where servers behind one another have each told."""
    pieces = values(headers, "Retry-After")
    dates = [f"{day}, {rest}" for day, rest in zip(pieces, pieces[1:])]  # a date has a comma itself
    return max((_wait(value, now) for value in pieces + dates), default=0.0)


def _wait(value: str, now: float) -> float:
    """Reads one value of Retry-After."""
    if re.fullmatch(r"[0-9]+", value):
        return float(value) if len(value) <= 10 and float(value) < _RETRY_AFTER_MAX else _RETRY_AFTER_MAX
    if not re.match(r"[A-Z][a-z]{2}", value):
        return 0.0
    try:
        at = parsedate_to_datetime(value)
        if at.tzinfo is None:
            at = at.replace(tzinfo=timezone.utc)
        seconds = at.timestamp()
    except (ValueError, OverflowError):  # the second for a year or a zone that no date can have
        return 0.0
    return min(max(0.0, seconds - now), _RETRY_AFTER_MAX)
