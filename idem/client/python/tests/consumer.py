"""Never run: what a strictly typed project sees of the package."""

import httpx

import idem_client


class Own:
    """A journal of the project's own."""

    def begin(self, operation: str, fresh: idem_client.Entry) -> tuple[idem_client.Entry, bool]:
        return fresh, False

    def alone(self, operation: str, key: str) -> bool:
        return True

    def done(self, operation: str, key: str) -> None:
        return None


def pay(journal: idem_client.Journal) -> int:
    config = idem_client.Config(journal=journal, attempts_max=3)
    with idem_client.Client("https://api.example", config, headers={"Authorization": "Bearer t"}) as api:
        try:
            accepted = api.post("/v1/payments", json={"amount": 1999}, operation="order-17/charge")
            final: httpx.Response = api.await_final(accepted)
            api.done("order-17/charge", idem_client.key_of(final))
            return final.status_code
        except idem_client.GaveUpError as error:
            reason: idem_client.Reason = error.reason
            raise RuntimeError(reason) from error


async def pay_later() -> str | None:
    async with httpx.AsyncClient(transport=idem_client.AsyncIdempotencyTransport()) as http:
        answer = await http.post("https://api.example/v1/payments", json={}, extensions=idem_client.with_key("order-17"))
        return idem_client.key_of(answer)


pay(Own())
pay(idem_client.MemoryJournal())
pay(idem_client.FileJournal("/tmp/keys"))
