"""Journals keep the keys of named operations from before their first request until the caller is done with the answer."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from .errors import ConfigError, JournalError

if sys.platform != "win32":
    import fcntl

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
        means that nothing is sent: the JournalError `journal_full` that the operation has no entry and there is no room for
        one, so look for the entry once more when there is none: another caller may have taken the last place for it. Any other
        error proves nothing about earlier calls."""

    def alone(self, operation: str, key: str) -> bool:
        """Says whether the operation's entry still has the key, and no `begin` has returned it as resumed. The caller that
        made the entry asks before it takes an answer to say that nothing happened: a second caller may have sent the key,
        too. Raising counts as a no."""

    def done(self, operation: str, key: str) -> None:
        """Removes the operation's entry if it has the key, durably. One that is not there is no error, nor is one with another
        key: that is the next operation of the same name, which another caller has begun, and it stays."""


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
        self._shared: set[str] = set()  # those that a second caller got
        self._lock = threading.Lock()

    def begin(self, operation: str, fresh: Entry) -> tuple[Entry, bool]:
        """See `Journal`."""
        with self._lock:
            kept = self._entries.get(operation)
            if kept is not None:
                self._shared.add(operation)
                return kept, True
            if len(self._entries) >= self._entries_max:
                raise _full(self._entries_max)
            self._entries[operation] = fresh
            return fresh, False

    def alone(self, operation: str, key: str) -> bool:
        """See `Journal`."""
        with self._lock:
            kept = self._entries.get(operation)
            return kept is not None and kept.key == key and operation not in self._shared

    def done(self, operation: str, key: str) -> None:
        """See `Journal`."""
        with self._lock:
            kept = self._entries.get(operation)
            if kept is not None and kept.key == key:
                del self._entries[operation]
                self._shared.discard(operation)


_BESIDE_PREFIX = "begin-"
"""Begins the names of directories that are not renamed into place yet."""

_GONE_SUFFIX = "-gone"
"""Ends the names of those that are being removed."""

_BESIDE_AGE_MAX = 3600.0
"""More than a write takes. A process that was stopped for longer finds its directory gone when it renames it; nothing is sent
then."""

_OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST)
"""How file systems say that a directory has something in it."""

_SUFFIX = ".json"


class FileJournal:
    """A journal in a directory, for its owner alone to read. It survives the process and, as far as the disk does what fsync
    asks for, the machine; several processes on one machine may share it. Files hold operation ids and keys in the clear, in
    the format that the clients in Go and TypeScript have, too.

    The directory is made if need be, but none above it: another, empty journal is a new key for what was sent before. Put a
    journal on a volume into a directory that you made there, so that opening it is an error while the volume is not mounted. For
    the same reason the path must be absolute, since a relative one is another journal where the process starts elsewhere, and
    have no "..", which programs read in two ways behind a symbolic link.

    Each operation is a directory in the journal's, and its entry is the one file in that, named after the key. So an entry is
    removed by its key, and a directory that has an entry is neither replaced nor removed. A line break at a file's end, or the
    zero that a power cut left of it, says that a second caller has the entry, too."""

    def __init__(self, directory: str | os.PathLike[str], entries_max: int = ENTRIES_MAX_DEFAULT) -> None:
        self._directory = _absolute(directory)
        self._entries_max = _entries_max(entries_max)
        _make_durable(self._directory)
        _sync(self._directory)
        self._clean()

    def begin(self, operation: str, fresh: Entry) -> tuple[Entry, bool]:
        """See `Journal`. A file that can't be read is an error: a new key might execute again what the old one did."""
        kept = self._resume(operation)
        if kept is not None:
            return kept, True
        room = self._has_room()
        if room and self._write(operation, fresh):
            return fresh, False
        faster = self._resume(operation)  # another process was faster, and may have taken the last place
        if faster is not None:
            return faster, True
        raise JournalError("journal_unreadable", "the operation was ended while it began") if room else _full(self._entries_max)

    def alone(self, operation: str, key: str) -> bool:
        """See `Journal`."""
        try:
            raw = self._file(operation, key).read_bytes()
        except FileNotFoundError:
            return False  # another caller has ended it
        entry, shared = _parse(raw, operation)
        return entry.key == key and not shared

    def done(self, operation: str, key: str) -> None:
        """See `Journal`."""
        self._file(operation, key).unlink(missing_ok=True)
        _remove_empty(self._path(operation))  # the next operation may have its entry there
        _sync(self._directory)

    def _path(self, operation: str) -> Path:
        """The operation's directory. It has the name that earlier commits gave to a file: a client that meets what another one
        left there fails, and does not take the operation for a new one."""
        return self._directory / _name_of(operation)

    def _file(self, operation: str, key: str) -> Path:
        """The operation's entry with the key."""
        return self._path(operation) / _name_of(key)

    def _resume(self, operation: str) -> Entry | None:
        """Reads an entry that is there, and tells its first caller that there is a second one. The mark is not synced: the
        first caller does not outlive the machine either."""
        try:
            names = [name for name in os.listdir(self._path(operation)) if name.endswith(_SUFFIX)]  # NFS has others, of what was removed while it was open
            if not names:
                return None  # it was ended, and its directory is there still
            handle = os.open(self._path(operation) / names[0], os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            return None
        with os.fdopen(handle, "r+b", buffering=0) as file:
            entry, shared = _parse(file.readall(), operation)
            if not shared:
                file.write(b"\n")
        _sync(self._directory)  # the one who wrote it may not have got to this: what is used must be durable
        return entry

    def _has_room(self) -> bool:
        """Whether there is a place for another entry. The directory that a crash inside `done` left takes a place, so a full
        journal is cleaned and counted again."""
        if self._count() >= self._entries_max:
            self._clean()
        return self._count() < self._entries_max

    def _count(self) -> int:
        """Counts the operations' directories. What a crash left beside them does not count."""
        return sum(not name.startswith(_BESIDE_PREFIX) for name in os.listdir(self._directory))

    def _write(self, operation: str, entry: Entry) -> bool:
        """Made and synced beside, then renamed into place. That replaces an empty directory, and fails where another process
        has an entry: False."""
        times = {name: _text(at) for name, at in (("first_sent", entry.first_sent), ("given_at", entry.given_at)) if at is not None}
        beside = Path(tempfile.mkdtemp(prefix=_BESIDE_PREFIX, dir=self._directory))  # mode 0700
        placed = False
        try:
            handle = os.open(beside / _name_of(entry.key), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"operation": operation, "key": entry.key, **times}, file)
                file.flush()
                _flush(file.fileno())
            _sync(beside)
            os.rename(beside, self._path(operation))
            placed = True
        except OSError as error:
            if error.errno not in _OCCUPIED:
                raise
        finally:
            if not placed:
                shutil.rmtree(beside, ignore_errors=True)
        if placed:
            _sync(self._directory)
        return placed

    def _clean(self) -> None:
        """Removes what crashes left: directories beside the entries, and those of operations that were ended."""
        for name in os.listdir(self._directory):
            if name.startswith(_BESIDE_PREFIX):
                _clean_beside(self._directory / name)
            elif name.endswith(_SUFFIX):
                _remove_empty(self._directory / name)


def _name_of(text: str) -> str:
    """Hashes an id or a key: any one is a file's name then."""
    return hashlib.sha256(text.encode()).hexdigest() + _SUFFIX


def _remove_empty(directory: Path) -> None:
    """Removes a directory, unless there is something in it."""
    try:
        directory.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, *_OCCUPIED):
            raise


def _clean_beside(beside: Path) -> None:
    """Removes a directory beside the entries that is too old to be somebody's. It takes another name first: were its writer only
    stopped, it would rename a directory without its file into place."""
    gone = beside.with_name(beside.name.removesuffix(_GONE_SUFFIX) + _GONE_SUFFIX)
    try:
        if time.time() - beside.stat().st_mtime <= _BESIDE_AGE_MAX:
            return
        os.rename(beside, gone)
    except FileNotFoundError:
        return  # its writer, or another process, was faster
    shutil.rmtree(gone, ignore_errors=True)


def _absolute(directory: str | os.PathLike[str]) -> Path:
    """Refuses a directory that may be another, empty journal, with a new key for what was sent before."""
    path = Path(directory)
    if not path.is_absolute() or ".." in path.parts:
        rule = 'must be an absolute path without "..": any other one may be another journal, where the process starts elsewhere or behind a link'
        raise ConfigError(f"directory = {str(path)!r}: {rule}")
    return path


def _make_durable(directory: Path) -> None:
    """Makes the directory if it is missing, but none above it: where those are missing a volume may not be mounted. The name of
    one that is there is synced all the same: the one who made it may not have got to this."""
    if directory.exists():
        _sync_name(directory)
        return
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        rule = "must be in a directory that is there: if a volume is not mounted, a journal made in its place has new keys for what was sent before"
        raise ConfigError(f"directory = {str(directory)!r}: {rule}") from None
    _sync_name(directory.parent)
    _sync(directory.parent)


def _sync_name(directory: Path) -> None:
    """Makes the name of a directory durable. Where the one above it may not be read somebody else made it."""
    with contextlib.suppress(PermissionError):
        _sync(directory.parent)


def _sync(name: Path) -> None:
    """Makes the directory's names durable."""
    directory = os.open(name, os.O_RDONLY)
    try:
        _flush(directory)
    finally:
        os.close(directory)


def _flush(handle: int) -> None:
    """Makes what was written durable. On macOS fsync leaves it in the disk's own memory, where a power cut loses it; F_FULLFSYNC,
    which the clients in Go and TypeScript use by their runtimes, does not."""
    if sys.platform != "win32":
        full = getattr(fcntl, "F_FULLFSYNC", None)
        if full is not None:
            try:
                fcntl.fcntl(handle, full)
                return
            except OSError as error:
                if error.errno != errno.ENOTSUP:  # as some network file systems say
                    raise
    os.fsync(handle)


def _parse(raw: bytes, operation: str) -> tuple[Entry, bool]:
    """Reads the operation's file: the entry, and whether a second caller has it."""
    # A power cut may leave a zero in the mark's place: a file system makes a file longer before it has what is in it.
    content = raw.rstrip(b"\n\0")
    entry = _parse_entry(content, operation)
    if entry is None:
        raise JournalError("journal_unreadable", "a file is not the operation's entry")
    return entry, len(content) < len(raw)


def _parse_entry(raw: bytes, operation: str) -> Entry | None:
    """Reads a file's content; None where it is not the operation's entry."""
    try:
        kept = json.loads(raw)
        if kept["operation"] != operation or not isinstance(kept["key"], str) or not kept["key"]:
            return None
        return Entry(kept["key"], *(_time(kept[name]) if name in kept else None for name in ("first_sent", "given_at")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # half a file, or another's


def _text(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time(text: str) -> float:
    """Reads RFC 3339 in UTC with any number of digits of a second: Go writes up to nine, Python 3.10 reads three or six."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    if not text.endswith("Z"):
        raise ValueError("not in UTC")
    seconds = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc).timestamp()
    return seconds + (float("0." + fraction) if fraction else 0.0)
