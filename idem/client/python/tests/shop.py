"""What the README's examples import: a database would keep the answers."""

import httpx

import idem_client

token = "secret-token"
config = idem_client.Config(journal=idem_client.MemoryJournal())
_kept: dict[str, tuple[str, str | None]] = {}


def keep(operation: str, payment: httpx.Response, key: str | None) -> None:
    _kept[operation] = payment.text, key


def key_of_kept(operation: str) -> str | None:
    return _kept[operation][1] if operation in _kept else None
