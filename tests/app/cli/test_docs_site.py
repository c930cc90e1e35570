"""The documentation pages, and the links to them in error answers."""

from __future__ import annotations

import re

import pytest
from bs4 import BeautifulSoup

from app.docs_site import documents
from app.http.error_handlers import EXPLAINED
from providers.errors import Reason
from tests.docs.fences import DOCUMENTS


@pytest.fixture
def client(app):
    return app.test_client()


def page(client, path):
    answer = client.get(path)
    assert answer.status_code == 200, path
    return BeautifulSoup(answer.text, "html.parser")


def has(client, path):
    with client.get(path) as answer:
        return answer.status_code == 200


def test_every_document_has_a_page_and_every_link_on_it_leads_somewhere(client):
    assert {f"{name}.md" for name in documents.NAMES} == {file.name for file in DOCUMENTS[1:]}
    for name in documents.NAMES:
        shown = page(client, f"/docs/{name}")
        assert "<!--" not in shown.text
        for each in shown.select("main a[href]"):
            target, _, anchor = each["href"].partition("#")
            if target.endswith(".json"):
                assert has(client, f"/docs/{target}"), each
            elif not target.startswith("http"):
                there = page(client, f"/docs/{target or name}")
                assert not anchor or there.find(id=anchor), f"{name}: {each['href']}"
        for each in shown.select("main img"):
            assert has(client, f"/docs/{each['src']}"), each
        assert f"/docs/{name}" == shown.select_one("nav [aria-current]")["href"]


def test_the_first_document_is_the_start_and_needs_no_key(client):
    assert {client.get(path).location for path in ("/docs", "/docs/")} == {"/docs/quickstart"}


@pytest.mark.parametrize("path", ["nothing", "errors.md", "../pyproject.toml", "%2e%2e/a.png", "a/b.py"])
def test_other_files_are_not_served(client, path):
    assert client.get(f"/docs/{path}").status_code == 404


@pytest.mark.parametrize("path", ["nothing", "nothing.png"])
def test_a_missing_page_is_not_cached(client, path):
    answer = client.get(f"/docs/{path}")
    assert answer.status_code == 404
    assert "Cache-Control" not in answer.headers


def test_the_redirect_to_the_start_is_cached(client):
    assert client.get("/docs").headers["Cache-Control"] == "public, max-age=300"


def test_a_page_has_the_headers_of_the_dashboard(client):
    headers = client.get("/docs/errors").headers

    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "public, max-age=300"


@pytest.mark.parametrize(
    ("method", "path", "section"),
    [
        ("GET", "/v1/users", "401"),
        ("GET", "/v1/nothing", "404"),
        ("POST", "/v1/push/google", "404"),
        ("PATCH", "/healthz", "405"),
    ],
)
def test_an_error_links_to_the_section_that_helps(client, method, path, section):
    answer = client.open(path, method=method)

    assert answer.status_code == int(section)
    assert answer.headers["Link"] == f'</docs/errors#{section}>; rel="help"'
    assert page(client, "/docs/errors").find(id=section)


def test_below_a_prefix_the_link_has_it_too(client):
    answer = client.get("/v1/users", base_url="http://localhost/almanac")

    assert answer.headers["Link"].startswith("</almanac/docs/errors#")


def test_success_links_to_nothing(client):
    assert "Link" not in client.get("/v1/openapi.json").headers


def test_every_section_that_an_error_may_name_is_there(client):
    found = {each["id"] for each in page(client, "/docs/errors").select("[id]")}

    named = {str(status) for status in EXPLAINED if isinstance(status, int)}
    assert named | {reason.lower() for reason in Reason} | {"by-status"} <= found


def test_a_failed_calendar_leads_to_its_reason(api, sandbox, new_user):
    user = new_user(sandbox.account("google", "forbidden@example.com"))
    sandbox.fault(provider="google", operation="google.freebusy.query", status=403, reason="forbidden")

    answer = api.get(f"/users/{user}/calendar/busy", start="2027-01-04", end="2027-01-05")

    assert re.fullmatch(r'</docs/errors#\w+>; rel="help"', answer.headers["Link"])
    assert "403" not in answer.headers["Link"], "a reason tells more than its status"
