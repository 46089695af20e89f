"""What a request ends with where there is no answer. Each error has a `code` that never changes, for code to branch on."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal

Reason = Literal["canceled", "attempts", "elapsed", "retry_after", "permanent", "refused", "unproven", "unprotected"]
"""Why the client stopped asking. `refused` is a 401 or 403 after an attempt that may have happened; `unproven` is another
answer then that nothing marks as a stored one, such as the 404 of a route that is gone, or a 409 of the service's own that is not
stored. `unprotected` is an answer that says that the key protects nothing there: one from 300 on after such an attempt, one that
broke off after its head, or a 202 whose end `await_final` did not see. Each attempt that arrived may have been executed, and another
one may be, too, so look at the resource. `canceled` is the TypeScript client's alone: in Python a cancellation stays one."""

_CODE = re.compile(r"[a-z0-9_.]{1,64}")


def plain_code(code: object) -> str:
    """The code of a problem (RFC 9457) where it looks like one; errors and logs hold nothing else of an answer's body."""
    return code if isinstance(code, str) and _CODE.fullmatch(code) else ""


def _rebuilt(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """An error of the kind, without its initializer. That takes more than `args`: those are what is shown, which the key is not."""
    return kind.__new__(kind, *args)


class IdempotencyError(Exception):
    """What every end without an answer says. Neither its text nor its repr has the key in it."""

    code: ClassVar[str]
    unknown: bool = True
    """Whether the operation may have happened or may yet happen: no new key may be used then. Asking again with the key is
    safe, and the only safe thing to do, but not after an ExpiredError, nor after a GaveUpError whose reason is `unprotected`: look
    at the resource then."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self._key = key

    @property
    def key(self) -> str:
        """The key that the request was, or would have been, sent with."""
        return self._key

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args), self.__dict__


class MismatchError(IdempotencyError):
    """The key belongs to another request: 422, or 400 by the server's policy. Nothing was executed now; where `unknown`
    is true an earlier attempt with the key may have been."""

    code = "key_mismatch"

    def __init__(self, key: str, status: int, problem_code: str, earlier: bool) -> None:
        super().__init__(key, f"the key was used before with another request ({status} {problem_code})")
        self.unknown = earlier
        self.status = status
        self.problem_code = problem_code


class OutcomeUnknownError(IdempotencyError):
    """The server does not know whether the operation happened, and is finding out. It never executes it again by this key."""

    code = "outcome_unknown"

    def __init__(self, key: str, retry_after: float) -> None:
        super().__init__(key, f"the server does not know the outcome yet; ask again after {retry_after:g} s")
        self.retry_after = retry_after
        """When to ask again, in seconds; 0 where the server names no time."""


class ExpiredError(IdempotencyError):
    """The server no longer has, or may no longer have, what became of the key: 410 or 412, a status that is gone, or a
    key that is too old, or of unknown age, and was not sent (again). The operation may have happened, and only the resource
    itself tells; the same key might execute anew."""

    code = "key_expired"

    def __init__(self, key: str, status: int, ahead: bool = False) -> None:
        old = "the key's first use lies ahead: a clock was or is wrong, and its record may be gone" if ahead else "the key is too old: its record may be gone"
        super().__init__(key, f"the record of the key is gone ({status})" if status else old)
        self.status = status
        """The server's; 0 where the key was not sent."""


class GaveUpError(IdempotencyError):
    """The client stopped asking before there was an answer. Ask again with the error's key, unless `reason` is `unprotected`.
    Its `__cause__` is the last attempt's error, if it had one."""

    code = "gave_up"

    def __init__(self, key: str, reason: Reason, attempts: int, status: int, problem_code: str, retry_after: float) -> None:
        last = f"; last answer {status} {problem_code}" if status else ""
        super().__init__(key, f"outcome unknown after {attempts} attempts: {reason}{last}")
        self.reason: Reason = reason
        self.attempts = attempts
        self.status = status
        """The last answer's; 0 where there was none."""
        self.problem_code = problem_code
        self.retry_after = retry_after
        """What the last answer asked for, in seconds; 0 where it didn't."""


class NotSentError(ValueError):
    """The request was not sent by this call."""

    code: ClassVar[str]
    unknown: bool
    """Whether an earlier call may have been sent: the request names an operation, or its key was given. No new key may be used
    then."""

    def __init__(self, rule: str, unknown: bool = False) -> None:
        super().__init__(rule)
        self.unknown = unknown

    def __str__(self) -> str:
        return ("not sent by this call, but perhaps by an earlier one: " if self.unknown else "not sent: ") + super().__str__()


class KeyRefusedError(NotSentError):
    """The request was not sent because of its key, which the error does not name. It is not `unknown` where the journal says
    that a named operation is new, or where a given key can't be sent."""

    code = "key_refused"


class BodyRefusedError(NotSentError):
    """The request was not sent: its body is a stream that is too long to be kept for a second time."""

    code = "body_refused"


class ConfigError(ValueError):
    """A setting that can't be; the text names it, its value and the rule."""

    code = "config_invalid"


class AnswerTooLongError(Exception):
    """An answer of more bytes than the client may hold. Asking again would not make it shorter. It is a cause of
    `GaveUpError`."""

    code = "answer_too_long"


class JournalError(Exception):
    """A journal that keeps as many operations as it may (`journal_full`), or a file of it that is not an entry
    (`journal_unreadable`). It is a cause of `KeyRefusedError`."""

    def __init__(self, code: Literal["journal_full", "journal_unreadable"], message: str) -> None:
        super().__init__(f"journal: {message}")
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args), self.__dict__
