"""The rules, without I/O: generators that say what to do next, and are told what came of it. The transports do it."""

from __future__ import annotations

import hashlib
import logging
import math
import re
import ssl
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import datetime, timezone

import anyio
import httpcore
import httpx

from .answer import RETRIED, Answer, judge, protects_nothing, status_of
from .config import Config, Pace, retry_after_of
from .errors import AnswerTooLongError, BodyRefusedError, ExpiredError, GaveUpError, JournalError, KeyRefusedError, MismatchError, OutcomeUnknownError, Reason
from .journal import Entry
from .key import key_of, line_of, mint

log = logging.getLogger("idem_client")

KEY, OPERATION, WITHOUT_KEY = "idem_key", "idem_operation", "idem_without_key"
ENTRY, NOTHING, UNPROTECTED = "idem_entry", "idem_nothing_happened", "idem_unprotected"
"""The extensions of a httpx.Request that say what its key is."""
STORED = "idem_stored"
"""The extension of a httpx.Response that says that it is the stored, final answer."""


@dataclass(frozen=True)
class Begin:
    """Ask the journal for the operation's entry."""

    operation: str
    fresh: Entry


@dataclass(frozen=True)
class Alone:
    """Ask the journal whether nobody else has the operation's key."""

    operation: str
    key: str


@dataclass(frozen=True)
class Ask:
    """Send the request once, and read its answer."""

    request: httpx.Request
    look: Callable[[], None] = lambda: None
    """Raises where the request must not leave any more. To be called when there is a connection."""


@dataclass(frozen=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True)
class Lost:
    """What was to be done failed."""

    cause: Exception
    head: Answer | None = None
    """The answer without its body, where its head came."""


Step = Begin | Alone | Ask | Pause
Reply = Answer | Lost | tuple[Entry, bool] | bool | None
Machine = Generator[Step, Reply, httpx.Response]

_OPERATION_BYTES_MAX = 256
_KEY_AHEAD_MAX = 120.0
"""How far ahead a key's first use may lie, as on the server: the clocks of two machines differ by less. Further ahead one of the
two readings was wrong, and nobody knows how old the key is."""


@dataclass
class _Operation:
    """What every attempt has in common, and what the last one came to."""

    config: Config
    request: httpx.Request
    key: str
    pace: Pace
    seen: float  # the first time at which the key is known to have been there: it is at least that old
    resumed: bool = False
    journalled: str | None = None  # its name in the journal, if it is there
    unprotected: bool = False  # an answer's head told that the key protects nothing: nothing is sent again then
    status: int = 0
    code: str = ""
    retry_after: float = 0.0
    cause: Exception | None = field(default=None, repr=False)
    content: bytes = field(default=b"", repr=False)  # the answer's, decompressed

    def note(self, reply: Reply) -> Answer | None:
        """Keeps what an attempt came to, and returns its answer if there is one."""
        self.status, self.code, self.retry_after, self.cause, self.content = 0, "", 0.0, None, b""
        if isinstance(reply, Answer):
            try:
                self.content = reply.content(self.config.answer_bytes_max)
            except (httpx.DecodingError, AnswerTooLongError) as cause:
                reply = Lost(cause)
        if isinstance(reply, Answer):
            self.status, self.code = reply.status, reply.problem_code(self.content)
            self.retry_after = retry_after_of(reply.headers, self.config.now())
            return reply
        assert isinstance(reply, Lost)
        self.cause = reply.cause
        return None

    def first(self) -> Generator[Step, Reply, bool]:
        """Whether this is the only attempt ever made with the key. A second caller of the operation is in the journal before
        it sends."""
        if self.pace.attempts != 1 or self.resumed:
            return False
        if self.journalled is None:
            return True
        return (yield Alone(self.journalled, self.key)) is True

    def look(self) -> None:
        """Raises an ExpiredError where the key must not be sent (again). By the date: a clock that nobody sets may stand still
        while the machine is suspended, and the server's records grow old."""
        age = self.config.now() - self.seen
        if age > self.config.key_age_max or age < -_KEY_AHEAD_MAX:
            raise ExpiredError(self.key, 0, age < 0)

    def gave_up(self, reason: Reason, cause: Exception | None = None) -> GaveUpError:
        """Where the key protects nothing that is the reason, whatever else ended it: after any other one the key would be sent
        again."""
        why: Reason = "unprotected" if self.unprotected else reason
        error = GaveUpError(self.key, why, self.pace.attempts, self.status, self.code, self.retry_after)
        error.__cause__ = cause or self.cause
        self.tell(logging.WARNING, "no answer: %s", why)
        return error

    def tell(self, level: int, message: str, detail: object) -> None:
        """Logs no body, key or token: of the key its hash, of an error its type."""
        hashed = hashlib.sha256(self.key.encode()).hexdigest()[:16]
        error = type(self.cause).__name__ if self.cause else ""
        log.log(level, message + " (key #%s, attempt %d, status %d %s%s)", detail, hashed, self.pace.attempts, self.status, self.code, error)


def send(config: Config, request: httpx.Request, body: bytes) -> Machine:
    """Sends a POST or PATCH until it has an answer, with one key."""
    try:
        entry, resumed = yield from _begin(config, request)
        headers = _headers(config, request, entry, len(body))
    except KeyRefusedError as refused:
        full = isinstance(refused.__cause__, JournalError) and refused.__cause__.code == "journal_full"  # it was read, and has no entry
        refused.unknown = refused.unknown or (_is_name(request.extensions.get(OPERATION)) and not full)
        raise
    times = (entry.first_sent, entry.given_at, config.now())
    seen = next(at for at in times if at is not None)
    pace = Pace(config, config.attempts_max, config.elapsed_max)
    op = _Operation(config, request, entry.key, pace, seen, resumed, request.extensions.get(OPERATION))
    # Kept in the request, so that a redirect, another round of authentication, await_final and a caller that sends the request
    # again have the same key, and its age.
    request.extensions = {**request.extensions, KEY: entry.key, ENTRY: entry, NOTHING: False, UNPROTECTED: False}
    while True:
        op.look()
        op.pace.attempts += 1
        again = httpx.Request(request.method, request.url, headers=headers, stream=httpx.ByteStream(body), extensions=request.extensions)
        reply = yield Ask(again, op.look)
        answer, head = op.note(reply), _head(reply)
        op.unprotected = head is not None and protects_nothing(head.headers)
        if answer is not None:
            response = yield from _judged(op, answer)
            if response is not None:
                return response
        elif isinstance(op.cause, ExpiredError):
            raise op.cause
        elif head is not None and op.unprotected:  # the answer broke off after its head
            op.status = head.status
            raise op.gave_up("unprotected")
        elif op.cause is not None and never_sent(op.cause) and (yield from op.first()):
            raise op.cause
        elif op.cause is not None and permanent(op.cause):
            raise op.gave_up("permanent")
        yield from _pause(op)


def _head(reply: Reply) -> Answer | None:
    """An answer as far as it came; None where not even its head did."""
    head = reply.head if isinstance(reply, Lost) else reply
    return head if isinstance(head, Answer) else None


def _pause(op: _Operation) -> Generator[Step, Reply, None]:
    wait = op.pace.next(op.retry_after)
    if isinstance(wait, str):
        raise op.gave_up(wait)
    op.tell(logging.INFO, "asking again after %.3f s", wait)
    reply = yield Pause(wait)
    if isinstance(reply, Lost):
        raise op.gave_up("permanent", reply.cause)


def _judged(op: _Operation, answer: Answer) -> Generator[Step, Reply, httpx.Response | None]:
    """The response for the caller, or None where the request is to be tried again."""
    verdict = judge(answer.status, answer.headers, op.code)
    nothing = verdict in ("refused", "unproven", "unprotected") and (yield from op.first())
    if verdict == "answer" or verdict == "stored" or nothing:
        # Another round of authentication, and a redirect, are the first attempt still if nothing can have happened.
        op.request.extensions = {**op.request.extensions, NOTHING: nothing, UNPROTECTED: op.unprotected}
        response = _handed_over(op, answer)
        response.extensions[STORED] = verdict == "stored" and op.status != 202  # a 202 is not the end, also where it is stored
        return response
    if verdict == "mismatch":
        raise MismatchError(op.key, op.status, op.code, not (yield from op.first()))
    if verdict == "unknown":
        raise OutcomeUnknownError(op.key, op.retry_after)
    if verdict == "expired":
        raise ExpiredError(op.key, op.status)
    if verdict == "refused" or verdict == "unproven" or verdict == "unprotected":
        raise op.gave_up(verdict)
    return None


def _handed_over(op: _Operation, answer: Answer) -> httpx.Response:
    """The response for the caller. httpx looks where it leads, also if it is not to follow, and its error has no key."""
    response = answer.response(op.request)
    if response.has_redirect_location and not _is_place(op.request.url, response.headers["Location"]):
        raise op.gave_up("permanent", ValueError("the answer's Location is no URL"))
    return response


def _is_place(asked: httpx.URL, location: str) -> bool:
    """Whether httpx can make a URL of the Location of a redirect."""
    try:
        place = httpx.URL(location)
        if place.scheme and not place.host:  # httpx puts in the host that was asked
            place.copy_with(host=asked.host)
        asked.join(place)
    except (httpx.InvalidURL, ValueError):  # ValueError: a host whose Punycode can't be read
        return False
    return True


def _begin(config: Config, request: httpx.Request) -> Generator[Step, Reply, tuple[Entry, bool]]:
    """Finds or makes the key, and says whether it was used before, or may have been."""
    given = _given(config, request)
    kept = entry_of(request)
    before = kept if kept is not None and kept.key == given else None
    if before is not None and request.extensions.get(NOTHING) is True:
        return before, False  # another round of the same request, and nothing ever came of the key
    now = config.now()
    # A given key may be older: a time of first use would be a false proof that it is not.
    fresh = before or (Entry(mint(now), first_sent=now) if given is None else Entry(given, given_at=now))
    line_of(fresh.key, config.syntax)  # what can't be sent is not journalled
    name = request.extensions.get(OPERATION)
    if name is None:
        return fresh, given is not None
    if config.journal is None:
        raise KeyRefusedError("a named operation needs a journal")
    if not isinstance(name, str) or not _is_name(name):
        raise KeyRefusedError(f"an operation is named by 1 to {_OPERATION_BYTES_MAX} bytes", given is not None)
    reply = yield Begin(name, fresh)
    if isinstance(reply, Lost):
        raise KeyRefusedError("the journal has no key for the operation", given is not None) from reply.cause
    assert isinstance(reply, tuple)
    entry, resumed = reply
    if given is not None and entry.key != given:
        raise KeyRefusedError("the journal has another key for the operation")
    return entry, resumed or given is not None


def _is_name(name: object) -> bool:
    """Whether a journal may have an operation of that name."""
    return isinstance(name, str) and 1 <= len(name.encode(errors="replace")) <= _OPERATION_BYTES_MAX


def _given(config: Config, request: httpx.Request) -> str | None:
    in_header = key_of(request.headers.get_list("Idempotency-Key"), config.syntax)
    in_extensions = request.extensions.get(KEY)
    if in_extensions is not None and not isinstance(in_extensions, str):
        raise KeyRefusedError("a key is a string")
    if in_header is not None and in_extensions is not None and in_header != in_extensions:
        raise KeyRefusedError("the header and the extensions have different keys", True)
    return in_extensions if in_header is None else in_header


def _headers(config: Config, request: httpx.Request, entry: Entry, length: int) -> httpx.Headers:
    headers = httpx.Headers(request.headers)
    headers["Idempotency-Key"] = line_of(entry.key, config.syntax)
    if config.send_first_sent and entry.first_sent is not None and "Idempotency-First-Sent" not in headers:
        headers["Idempotency-First-Sent"] = datetime.fromtimestamp(entry.first_sent, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    if headers.pop("Transfer-Encoding", None) is not None:
        headers["Content-Length"] = str(length)  # a stream that is kept now
    return headers


def entry_of(request: httpx.Request) -> Entry | None:
    """The entry of the operation that a request sends, or whose redirect it follows."""
    entry = request.extensions.get(ENTRY)
    return entry if isinstance(entry, Entry) else None


def land(config: Config, request: httpx.Request, entry: Entry) -> Machine:
    """Asks once for what an operation's redirect leads to, such as by the GET of a 303, and reads it to its end: its error must
    not look like a proof that nothing was sent, and httpx's own would, while it reads."""
    op = _Operation(config, request, entry.key, Pace(config, 1, config.elapsed_max), config.now())
    op.unprotected = request.extensions.get(UNPROTECTED) is True
    op.pace.attempts += 1
    assert isinstance(request.stream, (httpx.SyncByteStream, httpx.AsyncByteStream))
    asked = httpx.Request(request.method, request.url, headers=request.headers, stream=request.stream, extensions=request.extensions)
    answer = op.note((yield Ask(asked)))
    if answer is None:
        raise op.gave_up("permanent" if op.cause is not None and permanent(op.cause) else "attempts")
    return _handed_over(op, answer)


def consult(config: Config, step: Begin | Alone) -> Reply:
    """Asks the journal."""
    assert config.journal is not None
    if isinstance(step, Begin):
        return config.journal.begin(step.operation, step.fresh)
    return config.journal.alone(step.operation, step.key)


def never_sent(cause: BaseException) -> bool:
    """Whether an attempt failed before anything was sent, in a way that another one would, too.

    httpx says by `raise … from` what an error came of, and the context is not asked: it may be the error of another request,
    which the caller was handling when this one was made. httpcore takes the cause of a failed connection away in its pool
    (`raise exc from None`), so its context is asked instead; nothing was sent there."""
    seen: set[int] = set()
    link: BaseException | None = cause
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if isinstance(link, (ssl.SSLCertVerificationError, httpx.UnsupportedProtocol)):
            return True
        link = link.__cause__ or (link.__context__ if isinstance(link, httpcore.ConnectError) else None)
    return False


_OF_THE_NETWORK = (
    httpx.HTTPError, OSError, httpcore.NetworkError, httpcore.TimeoutException, httpcore.RemoteProtocolError, httpcore.ProxyError,
    anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream,
)
"""What loses an attempt. Any other exception is what a signal handler raised, such as a worker's at its limit of time, or a mistake."""


def permanent(cause: BaseException) -> bool:
    """Whether asking again can't help, or is not wanted."""
    return never_sent(cause) or isinstance(cause, httpx.LocalProtocolError) or not isinstance(cause, _OF_THE_NETWORK)


_NOT_ASKED = re.compile(r"(content-|idempotency-|if-).*|accept-encoding|expect|prefer|range|transfer-encoding", re.IGNORECASE)


def follow(config: Config, accepted: httpx.Response) -> Machine:
    """Asks the Location of a 202 until the operation is final."""
    request = accepted.request
    op = _Operation(config, request, request.extensions.get(KEY, ""), Pace(config, math.inf, config.await_max), config.now())
    op.unprotected = protects_nothing(accepted.headers)
    op.status, op.retry_after = accepted.status_code, retry_after_of(accepted.headers, config.now())
    location = _location(config, accepted)
    if location is None:
        raise op.gave_up("permanent", ValueError("the 202 has no Location on the API's own origin"))
    # The headers that were about the request's body, key or form of answer are left out.
    headers = httpx.Headers([(name, value) for name, value in request.headers.multi_items() if not _NOT_ASKED.fullmatch(name)])
    extensions = {name: value for name, value in request.extensions.items() if name in ("timeout", "sni_hostname")}
    state = ""
    while True:
        try:
            yield from _pause(op)
        except GaveUpError:
            if state == "unknown" and not op.unprotected:
                raise OutcomeUnknownError(op.key, op.retry_after) from None
            raise
        op.pace.attempts += 1
        answer = op.note((yield Ask(httpx.Request("GET", location, headers=headers, extensions=extensions))))
        if answer is None:
            if op.cause is not None and permanent(op.cause):
                raise op.gave_up("permanent")
            continue
        if op.status in RETRIED:
            continue
        # Another 404 may be that of a gateway which does not know the path, while the operation is pending.
        if op.code in ("operation_not_found", "idempotency_key_expired"):
            raise ExpiredError(op.key, op.status)
        try:
            status = status_of(op.content, config.answer_bytes_max) if op.status == 200 else None
        except AnswerTooLongError as cause:
            raise op.gave_up("permanent", cause)
        if status is None:
            raise op.gave_up("permanent", ValueError("the Location answers with something else than an operation's status"))
        if status.final is not None:
            final = status.final.response(request)
            final.extensions[STORED] = True
            return final
        state = status.state


def _location(config: Config, accepted: httpx.Response) -> httpx.URL | None:
    """Where the operation's status is. The request's credentials go nowhere else."""
    value = accepted.headers.get("Location", "")
    if not value:
        return None
    if config.base_url is not None and value.startswith("/") and not value.startswith("//"):
        value = config.base_url + value
    asked = accepted.request.url
    try:
        url = asked.join(value)
    except httpx.InvalidURL:
        return None
    return url if (url.scheme, url.host, url.port) == (asked.scheme, asked.host, asked.port) else None


def declared(request: httpx.Request, most: int) -> None:
    """Refuses a stream that says that it is too long."""
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > most:
        raise too_long(request, most)


def too_long(request: httpx.Request, most: int) -> BodyRefusedError:
    """The error of a stream that is too long."""
    return refused_body(request, f"the body is a stream of more than {most} bytes")


def refused_body(request: httpx.Request, rule: str) -> BodyRefusedError:
    """The error of a body that can't be sent twice. An earlier call may have been sent, as far as the request shows that by
    itself."""
    named = "Idempotency-Key" in request.headers or any(request.extensions.get(name) is not None for name in (KEY, OPERATION))
    return BodyRefusedError(rule, named and request.extensions.get(NOTHING) is not True)
