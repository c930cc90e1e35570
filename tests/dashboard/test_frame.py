"""Every answer of the dashboard: its headers, its static files, and no references to other hosts."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

import app.dashboard
from tests.dashboard.routes import pages

FOLDER = Path(app.dashboard.__file__).parent
FILES = sorted(each for each in (FOLDER / "static").iterdir())
POLICY = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    "img-src": ["'self'", "data:"],
    "connect-src": ["'self'"],
    "form-action": ["'self'"],
    "base-uri": ["'none'"],
    "frame-ancestors": ["'none'"],
}


def protected(page) -> None:
    policy = dict(each.split(" ", 1) for each in page.headers["Content-Security-Policy"].split("; "))
    assert {name: sources.split(" ") for name, sources in policy.items()} == POLICY
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert page.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert page.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert page.headers["X-Request-Id"]


def test_every_page_is_protected_and_never_cached(app, signed_in, visitor):
    for browser in (visitor, signed_in):
        for path in pages(app, "GET"):
            page = browser.get(path)

            assert page.status < 500, path
            protected(page)
            assert page.headers["Cache-Control"] == "no-store", path


def test_every_refusal_is_protected_too(signed_in, monkeypatch):
    for page in (
        signed_in.get("/nothing"),
        signed_in.get("//nothing"),
        signed_in.open("POST", "/account"),
        signed_in.open("PUT", "/nothing"),
        signed_in.open("POST", "/account/password", data={"csrf_token": "wrong"}),
        signed_in.post("/account/password", {"current": "x" * 2_000_000}),
    ):
        assert page.status >= 400
        protected(page)
        assert page.headers["Cache-Control"] == "no-store"


def test_every_file_is_there_protected_and_sets_no_cookie(visitor, signed_in):
    assert {each.suffix for each in FILES} == {".css", ".js", ".svg", ".txt"}
    for browser in (visitor, signed_in):
        for each in FILES:
            page = browser.get(f"/static/{each.name}")

            assert page.status == 200, each
            protected(page)
            assert page.headers["Cache-Control"] == "public, max-age=3600"
            assert "Set-Cookie" not in page.headers
            page.answer.close()


def loaded(page) -> list[str]:
    """The addresses of the files that a page loads."""
    found = page.html.select("script, head link")
    return [each.get("src") or each["href"] for each in found]


def test_a_file_is_kept_for_ever_by_a_name_that_changes_with_it(visitor, signed_in):
    addresses = {
        each
        for path in ("", "/explorer", "/activity", "/organizations", "/account")
        for each in loaded(signed_in.get(path))
    }
    names = {Path(urlsplit(each).path).name for each in addresses}
    assert names == {each.name for each in FILES if each.suffix != ".txt"}
    for address in addresses:
        parts = urlsplit(address)
        file = FOLDER / "static" / Path(parts.path).name
        assert parts.query == f"v={hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
        for path, kept in (
            (address, "public, max-age=31536000, immutable"),
            (f"{parts.path}?v=0123456789ab", "public, max-age=3600"),
            (f"{parts.path}?v=", "public, max-age=3600"),
        ):
            page = visitor.get(path)
            assert (page.status, page.headers["Cache-Control"]) == (200, kept), path
            page.answer.close()


@pytest.mark.parametrize("path", ["../web.py", "..%2Fblueprint.py", "%2e%2e/blueprint.py", "nothing.css", ""])
def test_no_other_file_is_served(visitor, path):
    page = visitor.get(f"/static/{path}")

    assert page.status == 404
    protected(page)


@pytest.mark.slow
def test_what_a_page_loads_and_where_it_leads_is_there(app, signed_in, visitor):
    seen = set()
    for browser in (visitor, signed_in):
        for path in pages(app, "GET"):
            page = browser.get(path)
            if page.status != 200:
                continue
            for name in ("href", "src", "action", "hx-get", "hx-post"):
                seen |= {
                    (name, urljoin(path, each[name]))
                    for each in page.html.select(f"[{name}]")
                    # Links load nothing, and following one sends no referrer.
                    if not (each.name == "a" and each.get("rel") == ["noopener", "noreferrer"])
                }
    bare = {(name, where.partition("?")[0]) for name, where in seen}
    assert {("src", "/dashboard/static/dashboard.js"), ("href", "/dashboard/account")} <= bare

    for name, where in seen:
        parts = urlsplit(where)
        assert not parts.netloc, where
        answer = signed_in.client.get(parts.path, query_string=parts.query, follow_redirects=True)
        # Routes that take only forms exist too.
        assert answer.status_code in (200, 405 if name in ("action", "hx-post") else 200), where
        answer.close()


def test_the_menu_marks_where_one_is(signed_in):
    for path, title in (("/", "Overview"), ("/account", "ada")):
        page = signed_in.get(path)

        (current,) = page.html.select(".menu [aria-current=page]")
        assert current.get_text() == title


def test_a_small_page_does_not_name_the_administrator(visitor):
    page = visitor.get("/nothing")

    assert page.html.select("nav") == []
    assert "hx-headers" not in page.text


def test_the_api_has_no_cookie_and_no_pages(api, signed_in):
    answer = api.get("/users", limit=1)

    assert answer.status_code == 200
    assert "Set-Cookie" not in answer.headers
    assert "Content-Security-Policy" not in answer.headers
    assert "Cookie" not in answer.headers.get("Vary", "")
    assert not [path for path in api.get("/openapi.json").json["paths"] if "dashboard" in path]


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_pages_and_their_files_are_compressed(signed_in, encoding):
    accepted = {"Accept-Encoding": encoding}
    page = signed_in.get("/keys")
    style, script = page.html.find("link", rel="stylesheet")["href"], page.html.find_all("script")[-2]["src"]

    for address in ("/dashboard/keys", "/dashboard/explorer", style, script):
        plain = signed_in.client.get(address, buffered=True)
        packed = signed_in.client.get(address, headers=accepted, buffered=True)

        assert (packed.status_code, packed.headers["Content-Encoding"]) == (200, encoding), address
        assert "Accept-Encoding" in packed.headers["Vary"]
        assert len(packed.data) < len(plain.data) / 2
        assert "Content-Encoding" not in plain.headers
    part = signed_in.client.get(style, headers={**accepted, "Range": "bytes=0-9"}, buffered=True)
    assert (part.status_code, len(part.data), part.content_encoding) == (206, 10, None)
