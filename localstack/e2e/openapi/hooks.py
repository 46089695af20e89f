"""Leads schemathesis past the forms, to what stands behind them.

A currency, an account, a key or a time at random fits its schema and leads nowhere: to an account that nobody has, a key
that another body has used, a request that is too old. So most become what is there, and a rest stays as it is.
"""

import os
import re
import zlib

import schemathesis

ACCOUNTS = {"from": os.environ["ACCOUNT_FROM"], "to": os.environ["ACCOUNT_TO"]}
SEEDED = {"acct_1", "acct_2"}  # the document's examples, and the money of other tests
VALID_KEY = re.compile(r"""("?)([!#-+\--:<-\[\]-~]{1,200})\1""")  # quoted or bare, with room for a suffix


@schemathesis.hook
def before_call(context, case, kwargs):
    if isinstance(case.body, dict):
        case.body = lead(case.body)
    headers = case.headers
    if headers is None:
        return
    request = zlib.crc32(repr((case.path_parameters, case.body)).encode(errors="replace"))
    if headers.get("Prefer", "").startswith("wait="):
        if request % 2:
            headers["Prefer"] = "wait=3"  # enough for a worker, in a run of a minute
        else:
            headers.pop("Prefer")
    if request % 8:  # the rest shares keys, and is late
        headers.pop("Idempotency-First-Sent", None)
        key = VALID_KEY.fullmatch(headers.get("Idempotency-Key", ""))
        if key:
            headers["Idempotency-Key"] = f"{key[1]}{key[2]}-{request}{key[1]}"


def lead(body):
    body = dict(body)
    if re.fullmatch("[A-Z]{3}", str(body.get("currency"))):
        body["currency"] = "EUR"
    for member, account in ACCOUNTS.items():
        value = body.get(member)
        if isinstance(value, str) and (value in SEEDED or len(value) % 2):
            body[member] = account
    return body
