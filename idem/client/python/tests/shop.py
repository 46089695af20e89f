"""What the README's examples import."""

import httpx

import idem_client

token = "secret-token"
config = idem_client.Config(journal=idem_client.MemoryJournal())


def keep(payment: httpx.Response) -> None:
    payment.raise_for_status()
