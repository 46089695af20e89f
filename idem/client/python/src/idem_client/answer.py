"""What an answer means for the operation: docs/semantics.md "On the wire", read from the client's side."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from .errors import AnswerTooLongError, plain_code


@dataclass(frozen=True)
class Answer:
    """An answer that was read to its end."""

    status: int
    headers: httpx.Headers
    body: bytes = field(repr=False)
    """As it came, which may be compressed."""
    extensions: dict[str, Any] = field(default_factory=dict, repr=False)

    def response(self, request: httpx.Request) -> httpx.Response:
        """The answer as it came, for the caller."""
        return httpx.Response(self.status, headers=self.headers, stream=httpx.ByteStream(self.body), request=request, extensions=self.extensions)

    def content(self, bytes_max: int) -> bytes:
        """The body, decompressed. Raises an AnswerTooLongError where it has more bytes than that, and a httpx.DecodingError where
        it can't be decompressed: also what was compressed twice, since a few bytes of that may be more than a machine holds."""
        codings = [c for c in self.headers.get_list("Content-Encoding", split_commas=True) if c.strip().lower() not in ("", "identity")]
        if not codings:
            bound(self.body, bytes_max)
            return self.body
        if len(codings) > 1:
            raise httpx.DecodingError("the answer is compressed more than once")
        slices = _Slices(self.body, _SLICES.get(codings[0].strip().lower(), _SLICE))
        content = bytearray()
        for part in httpx.Response(self.status, headers=self.headers, stream=slices).iter_bytes():
            content += part
            bound(content, bytes_max)
        return bytes(content)

    def problem_code(self, content: bytes) -> str:
        """The code of a problem document, else ""."""
        if not re.match(r"application/problem\+json *([;,]|$)", self.headers.get("Content-Type", ""), re.IGNORECASE):
            return ""
        document = parse(content)
        return plain_code(document.get("code")) if document else ""


_SLICES = {"gzip": 1 << 10, "deflate": 1 << 10}
_SLICE = 16
"""How many bytes are decompressed at once, by their coding, so that they come to no more than the bound and some MiB: a byte of gzip
comes to about a thousand at most, a few of brotli to 16 MiB."""


class _Slices(httpx.SyncByteStream):
    """A body in small pieces."""

    def __init__(self, body: bytes, size: int) -> None:
        self._body, self._size = body, size

    def __iter__(self) -> Iterator[bytes]:
        for at in range(0, len(self._body), self._size):
            yield self._body[at : at + self._size]


def bound(body: bytes | bytearray, bytes_max: int) -> None:
    """Raises an AnswerTooLongError where an answer, as far as it is read, has more bytes than that."""
    if len(body) > bytes_max:
        raise AnswerTooLongError(f"the answer has more than {bytes_max} bytes")


def parse(body: bytes) -> dict[str, Any] | None:
    """Reads a JSON object; None where it is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


Verdict = Literal["answer", "stored", "again", "mismatch", "unknown", "expired", "refused", "unproven", "unprotected"]
"""`stored` is an answer that is final: asking again gets the same. `refused` is 401 or 403: they come before the key is looked at, or from a handler whose answer is not stored. `unproven` is an
answer that nothing marks as one about each attempt with the key, and `unprotected` one that says that the key protects nothing
there."""

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 525, 526, 527, 529, 530, 598, 599})
"""The statuses after which the same key is safe and may help: those of RFC 9110, and those by which content delivery networks
say that they had no answer of the server (520 to 527, 529, 530, 598, 599), which may have executed the request."""


def values(headers: httpx.Headers, name: str) -> list[str]:
    """What a header says, on all of its lines, which are one here. Servers behind one another may each have told."""
    return [value.strip() for value in headers.get(name, "").split(",") if value.strip()]


def protects_nothing(headers: httpx.Headers) -> bool:
    """Whether an answer's head says that the key protects nothing there: each attempt that arrives is executed."""
    return not {"unprotected", "ignored"}.isdisjoint(values(headers, "Idempotency-Status"))


def _is_stored(headers: httpx.Headers) -> bool:
    """Whether an answer's head marks it as the stored one. Where a server behind the server says otherwise, `replayed` says
    nothing."""
    said = values(headers, "Idempotency-Status")
    replayed = "replayed" in said and "unknown" not in said and not protects_nothing(headers)
    return replayed or "true" in values(headers, "Idempotent-Replayed") or bool(values(headers, "Idempotency-Expires"))


_DECIDED = frozenset({"idempotency_response_not_kept", "idempotency_response_erased"})
"""The codes that say, by themselves, what became of the request: asking again gets the same."""


def judge(status: int, headers: httpx.Headers, code: str) -> Verdict:
    """An answer from 300 on that is not stored decides nothing about an attempt before: that may run still, and the server may
    have no record and no lease that keeps it from its commit."""
    said = values(headers, "Idempotency-Status")  # what the code says, also where the body was replaced
    unknown = "unknown" in said
    if _is_stored(headers):
        return "stored"  # whatever it says
    if protects_nothing(headers):
        return "unprotected" if status >= 300 else "answer"  # an attempt before was executed beside this one, if at all; so would be another one
    if code in _DECIDED and not unknown:
        return "stored"  # as far as it was kept
    if code == "idempotency_response_too_large" and not unknown:
        return "unproven"  # asking again gets the same, but it is not stored
    if status in RETRIED:
        return "again"
    if status == 409 and (code in ("idempotency_key_in_progress", "idempotency_key_in_use") or "in_progress" in said):
        return "again"
    if (status == 409 and code == "idempotency_outcome_unknown") or (unknown and status >= 300):
        return "unknown"
    if status in (400, 422) and (code in ("idempotency_key_reused_with_different_payload", "idempotency_error") or "mismatch" in said):
        return "mismatch"
    if status in (410, 412) and code == "idempotency_key_expired":
        return "expired"
    if status in (401, 403):
        return "refused"
    return "unproven" if status >= 300 else "answer"


@dataclass(frozen=True)
class Status:
    """The status of an operation (docs/payments-api.md); without `final` it is not final yet."""

    state: str
    final: Answer | None


def status_of(content: bytes, bytes_max: int) -> Status | None:
    """Reads what the Location of a 202 answers; None where that is no status. Raises an AnswerTooLongError where the final response
    has more bytes than that."""
    document = parse(content) or {}
    state, kept = document.get("state"), document.get("response")
    if not isinstance(state, str) or not state:
        return None
    if not kept or state not in ("completed", "failed"):
        return Status(state, None)
    try:
        body = base64.b64decode(kept["body"], validate=True) if kept.get("body_encoding") == "base64" else kept["body"].encode()
        final = Answer(int(kept["status"]), httpx.Headers(kept.get("headers") or {}), body)
        final.content(bytes_max)  # what can't be read is no response
    except (KeyError, ValueError, OverflowError, TypeError, AttributeError, httpx.DecodingError):  # OverflowError: a status of 1e999 is infinite
        return None
    return Status(state, final)
