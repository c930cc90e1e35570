"""The search for planted secrets finds them, however they are written."""

from __future__ import annotations

import base64
import json
import zlib
from urllib.parse import quote

import pytest

from tests.security.planted import found

SECRET = 'planted/secret+of "somebody"='
WRITTEN = {
    "as it is": SECRET,
    "in a URL": f"https://example.com/?token={quote(SECRET, safe='')}&x=1",
    "in JSON": json.dumps({"message": f"refused {SECRET}"}),
    "in hexadecimal digits": SECRET.encode().hex(),
    **{
        f"in base64 after {n}": base64.b64encode(b"x" * n + SECRET.encode() + b"yz").decode()
        for n in range(5)
    },
    **{
        f"in base64 of URLs after {n}": base64.urlsafe_b64encode(b"\xff" * n + SECRET.encode()).decode()
        for n in range(5)
    },
}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_secret_is_found(how: str):
    assert found({"it": SECRET}, {"there": WRITTEN[how].encode()}) == [("it", "there")]


def test_what_is_sealed_or_another_is_not():
    places = {"sealed": zlib.compress(SECRET.encode()), "another": b"planted/secret+of somebody"}
    assert found({"it": SECRET}, places) == []
