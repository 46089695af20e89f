"""Journals keep the keys of named operations from before their first request until the caller is done with the answer."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from .errors import ConfigError, JournalError

ENTRIES_MAX_DEFAULT = 4096
"""How many operations a journal keeps unless told otherwise. It never forgets one by itself."""


@dataclass(frozen=True)
class Entry:
    """What a journal keeps of an operation."""

    key: str
    """The operation's key, without quotes."""
    first_sent: float | None = None
    """When the key was first used, in seconds since 1970; None where that is not known."""
    given_at: float | None = None
    """When the journal got a key that the caller gave, whose first use may be earlier: the key is at least that old. None for a
    key that the client made."""

    def __repr__(self) -> str:
        return f"Entry(first_sent={self.first_sent}, given_at={self.given_at})"  # keys stay out of logs


class Journal(Protocol):
    """`FileJournal` survives the process; a journal in the caller's database is best, in the transaction that decides on
    the operation. It is used by several threads at once; the asynchronous transport calls it in a thread."""

    def begin(self, operation: str, fresh: Entry) -> tuple[Entry, bool]:
        """Returns the operation's entry: the one that is there already (and True), or else the fresh one (and False),
        kept durably before it returns. Of several callers at once, in several processes too, all get the same. Raising
        means that nothing is sent."""

    def done(self, operation: str) -> None:
        """Forgets an operation, durably. One that is not there is no error."""


def _entries_max(most: int) -> int:
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise ConfigError(f"entries_max = {most!r}: must be a positive whole number")
    return most


def _full(most: int) -> JournalError:
    return JournalError("journal_full", f"it keeps {most} operations already")


class MemoryJournal:
    """A journal for the life of the process."""

    def __init__(self, entries_max: int = ENTRIES_MAX_DEFAULT) -> None:
        self._entries_max = _entries_max(entries_max)
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()

    def begin(self, operation: str, fresh: Entry) -> tuple[Entry, bool]:
        """See `Journal`."""
        with self._lock:
            kept = self._entries.get(operation)
            if kept is not None:
                return kept, True
            if len(self._entries) >= self._entries_max:
                raise _full(self._entries_max)
            self._entries[operation] = fresh
            return fresh, False

    def done(self, operation: str) -> None:
        """See `Journal`."""
        with self._lock:
            self._entries.pop(operation, None)


class FileJournal:
    """A journal in a directory, one file for each operation, for its owner alone to read. It survives the process and, as
    far as the disk does what fsync asks for, the machine; several processes on one machine may share it. Files hold
    operation ids and keys in the clear, in the format that the clients in Go and TypeScript have, too."""

    def __init__(self, directory: str | os.PathLike[str], entries_max: int = ENTRIES_MAX_DEFAULT) -> None:
        self._directory = Path(directory)
        self._entries_max = _entries_max(entries_max)
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sync()

    def begin(self, operation: str, fresh: Entry) -> tuple[Entry, bool]:
        """See `Journal`. A file that can't be read is an error: a new key might execute again what the old one did."""
        kept = self._read(operation)
        if kept is not None:
            return kept, True
        if self._write(operation, fresh):
            return fresh, False
        faster = self._read(operation)  # another process was faster
        if faster is None:
            raise JournalError("journal_unreadable", "the operation was ended while it began")
        return faster, True

    def done(self, operation: str) -> None:
        """See `Journal`."""
        self._path(operation).unlink(missing_ok=True)
        self._sync()

    def _path(self, operation: str) -> Path:
        """Hashed: any id is a file name then."""
        return self._directory / (hashlib.sha256(operation.encode()).hexdigest() + ".json")

    def _read(self, operation: str) -> Entry | None:
        try:
            raw = self._path(operation).read_bytes()
        except FileNotFoundError:
            return None
        entry = _parse(raw, operation)
        if entry is None:
            raise JournalError("journal_unreadable", "a file is not the operation's entry")
        self._sync()  # the one who wrote it may not have got to this: what is used must be durable
        return entry

    def _write(self, operation: str, entry: Entry) -> bool:
        """Written and synced beside, then linked into place: a rename would overwrite another process's entry."""
        if len(os.listdir(self._directory)) >= self._entries_max:
            raise _full(self._entries_max)
        times = {name: _text(time) for name, time in (("first_sent", entry.first_sent), ("given_at", entry.given_at)) if time is not None}
        handle, beside = tempfile.mkstemp(prefix="begin-", dir=self._directory)  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"operation": operation, "key": entry.key, **times}, file)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(beside, self._path(operation))
            except FileExistsError:
                return False
            self._sync()
            return True
        finally:
            os.unlink(beside)

    def _sync(self) -> None:
        """Makes the directory's names durable."""
        directory = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _parse(raw: bytes, operation: str) -> Entry | None:
    """Reads a file's content; None where it is not the operation's entry."""
    try:
        kept = json.loads(raw)
        if kept["operation"] != operation or not isinstance(kept["key"], str) or not kept["key"]:
            return None
        return Entry(kept["key"], *(_time(kept[name]) if name in kept else None for name in ("first_sent", "given_at")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # half a file, or another's


def _text(time: float) -> str:
    return datetime.fromtimestamp(time, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time(text: str) -> float:
    """Reads RFC 3339 in UTC with any number of digits of a second: Go writes up to nine, Python 3.10 reads three or six."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    if not text.endswith("Z"):
        raise ValueError("not in UTC")
    seconds = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc).timestamp()
    return seconds + (float("0." + fraction) if fraction else 0.0)
