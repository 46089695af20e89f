"""What an answer means for the operation: docs/semantics.md "On the wire", read from the client's side."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from .errors import plain_code


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

    def content(self) -> bytes | None:
        """The body, decompressed; None where that fails."""
        response = httpx.Response(self.status, headers=self.headers, stream=httpx.ByteStream(self.body))
        try:
            return response.read()
        except httpx.DecodingError:
            return None

    def problem_code(self) -> str:
        """The code of a problem document, else ""."""
        if not re.match(r"application/problem\+json *(;|$)", self.headers.get("Content-Type", ""), re.IGNORECASE):
            return ""
        document = parse(self.content())
        return plain_code(document.get("code")) if document else ""


def parse(body: bytes | None) -> dict[str, Any] | None:
    """Reads a JSON object; None where it is none."""
    try:
        document = json.loads(body or b"")
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


def protects_nothing(headers: httpx.Headers) -> bool:
    """Whether an answer's head says that the key protects nothing there: each attempt that arrives is executed. Servers behind one
    another may each have told, and their lines are one here."""
    return any(said.strip() in ("unprotected", "ignored") for said in headers.get("Idempotency-Status", "").split(","))


_DECIDED = frozenset({"idempotency_response_not_kept", "idempotency_response_erased"})
"""The codes that say, by themselves, what became of the request: asking again gets the same."""


def judge(status: int, headers: httpx.Headers, code: str) -> Verdict:
    """An answer from 300 on that is not stored decides nothing about an attempt before: that may run still, and the server may
    have no record and no lease that keeps it from its commit."""
    kept = headers.get("Idempotency-Status", "")  # says what the code says, also where the body was replaced
    if headers.get("Idempotent-Replayed") == "true" or headers.get("Idempotency-Expires") or kept == "replayed":
        return "stored"  # whatever it says
    if protects_nothing(headers):
        return "unprotected" if status >= 300 else "answer"  # an attempt before was executed beside this one, if at all; so would be another one
    if code in _DECIDED and kept != "unknown":
        return "stored"  # as far as it was kept
    if code == "idempotency_response_too_large" and kept != "unknown":
        return "unproven"  # asking again gets the same, but it is not stored
    if status in RETRIED:
        return "again"
    if status == 409 and (code in ("idempotency_key_in_progress", "idempotency_key_in_use") or kept == "in_progress"):
        return "again"
    if (status == 409 and code == "idempotency_outcome_unknown") or (kept == "unknown" and status >= 300):
        return "unknown"
    if status in (400, 422) and (code in ("idempotency_key_reused_with_different_payload", "idempotency_error") or kept == "mismatch"):
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


def status_of(answer: Answer) -> Status | None:
    """Reads what the Location of a 202 answers; None where that is no status."""
    document = parse(answer.content()) or {}
    state, kept = document.get("state"), document.get("response")
    if not isinstance(state, str) or not state:
        return None
    if not kept or state not in ("completed", "failed"):
        return Status(state, None)
    try:
        body = base64.b64decode(kept["body"], validate=True) if kept.get("body_encoding") == "base64" else kept["body"].encode()
        final = Answer(int(kept["status"]), httpx.Headers(kept.get("headers") or {}), body)
    except (KeyError, ValueError, OverflowError, TypeError, AttributeError):  # OverflowError: a status of 1e999 is infinite
        return None
    return None if final.content() is None else Status(state, final)
