"""The headers for browsers and caches of every answer, to every client and path."""

from __future__ import annotations

import pytest

from tests.security.matrix import OPEN, ROWS, Row
from tests.security.tenants import Settle, Tenant, consent

PAGES = ("/v1/docs", "/v1/oauth/google/callback", "/v1/oauth/google/callback?state=x&code=x&error=x")


@pytest.fixture
def tenant(new_tenant: Settle) -> Tenant:
    return new_tenant()


def for_nobody_else(headers) -> None:
    """No cache between server and client may give it to others, and no other site's script may read it."""
    kept = headers.get("Cache-Control", "")
    assert not any(word in kept for word in ("public", "s-maxage", "must-revalidate", "immutable"))
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert not [name for name, _ in headers if name.startswith("Access-Control")]
    assert "Set-Cookie" not in headers
    assert "Server" not in headers
    assert "Accept-Encoding" in headers["Vary"]


@pytest.mark.slow
def test_no_answer_of_the_api_is_for_others(api, tenant: Tenant):
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "DELETE"}
    names = tenant.names | consent(api, tenant)
    for row in (*(row for row in ROWS if row.kind == "read"), *map(Row, OPEN)):
        method, path, more = row.request(names)
        for each in (method, "OPTIONS"):
            answer = api.call(each, path, headers=origin, **more)
            for_nobody_else(answer.headers)
            assert "evil" not in str(answer.headers)


@pytest.mark.parametrize("path", PAGES)
def test_no_page_can_be_framed_or_runs_what_it_did_not_come_with(app, path: str):
    answer = app.test_client().get(path)

    assert answer.mimetype == "text/html"
    assert answer.headers["X-Frame-Options"] == "DENY"
    policy = dict(each.strip().split(" ", 1) for each in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == "'none'"
    assert "unsafe" not in policy.get("script-src", "")
    assert answer.headers["Referrer-Policy"] in ("no-referrer", "same-origin")
