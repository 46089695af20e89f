"""Keys, and how they are written in the Idempotency-Key header."""

from __future__ import annotations

import re
import secrets
import uuid
from typing import Literal

from .errors import KeyRefusedError

Syntax = Literal["structured", "opaque"]
"""How keys are written: `structured` is a quoted String (RFC 9651, section 3.3.3), `opaque` is the key as it stands, for
servers that take the quotes for a part of the key."""

_PRINTABLE = re.compile(r"[\x20-\x7e]{1,255}")
_OPAQUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")
_BARE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+")
_QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')


def mint(now: float) -> str:
    """Makes a UUIDv7 (RFC 9562 section 5.7): its time lets a server judge the key's age."""
    value = int(now * 1000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    return str(uuid.UUID(int=value & ~(0x3 << 62) | 0x2 << 62))


def line_of(key: str, syntax: Syntax) -> str:
    """Writes a key as the value of the header, so that a server reads the same key."""
    if syntax == "opaque":
        if not _OPAQUE.fullmatch(key):
            raise KeyRefusedError("an opaque key is 1 to 255 characters of printable ASCII, no space at its ends")
        return key
    if not _PRINTABLE.fullmatch(key):
        raise KeyRefusedError("a key is 1 to 255 characters of printable ASCII")
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def key_of(lines: list[str], syntax: Syntax) -> str | None:
    """Reads the key that the caller put into the header; None for none."""
    if not lines:
        return None
    value = lines[0].strip(" \t")
    if len(lines) == 1 and syntax == "opaque":
        return value
    if len(lines) == 1 and _BARE.fullmatch(value):
        return value
    quoted = _QUOTED.fullmatch(value)
    if len(lines) > 1 or not quoted:
        raise KeyRefusedError("the header Idempotency-Key is malformed")
    return re.sub(r"\\(.)", r"\1", quoted[1])
