"""A client of an API that honours Idempotency-Key, for httpx: one operation has one key, whatever is lost on the way.

`Client` and `AsyncClient` are ready to use; `IdempotencyTransport` and `AsyncIdempotencyTransport` are for an httpx client
of one's own. Use them only for APIs that honour the key: elsewhere a second request may be a second execution.
"""

from .client import AsyncClient, Client
from .config import Config
from .errors import (
    AnswerTooLongError,
    BodyRefusedError,
    ConfigError,
    ExpiredError,
    GaveUpError,
    IdempotencyError,
    JournalError,
    KeyRefusedError,
    MismatchError,
    NotSentError,
    OutcomeUnknownError,
    Reason,
)
from .journal import Entry, FileJournal, Journal, MemoryJournal
from .key import Syntax
from .transport import AsyncIdempotencyTransport, IdempotencyTransport, key_of, operation, stored, with_key, without_key

__all__ = [
    "AnswerTooLongError",
    "AsyncClient",
    "AsyncIdempotencyTransport",
    "BodyRefusedError",
    "Client",
    "Config",
    "ConfigError",
    "Entry",
    "ExpiredError",
    "FileJournal",
    "GaveUpError",
    "IdempotencyError",
    "IdempotencyTransport",
    "Journal",
    "JournalError",
    "KeyRefusedError",
    "MemoryJournal",
    "MismatchError",
    "NotSentError",
    "OutcomeUnknownError",
    "Reason",
    "Syntax",
    "key_of",
    "operation",
    "stored",
    "with_key",
    "without_key",
]
