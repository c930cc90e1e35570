"""Paths outside the dashboard that a person opens: the root, the icon, and paths that do not exist."""

from __future__ import annotations

import pytest

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_the_root_leads_to_the_dashboard(app):
    answer = app.test_client().get("/", headers=BROWSER)

    assert (answer.status_code, answer.headers["Location"]) == (302, "/dashboard/")


@pytest.mark.parametrize("path", ["/nothing", "/users", "/v2/users", "/docs/nothing", "/nothing.ico"])
def test_an_unknown_path_is_a_page_for_browsers(app, path):
    answer = app.test_client().get(path, headers=BROWSER, base_url="http://localhost")

    assert (answer.status_code, answer.mimetype) == (404, "text/html")
    assert "<h1>Not found</h1>" in answer.text
    assert 'href="/dashboard/"' in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1"), ("GET", "/v1/nothing"), ("PATCH", "/v1/users")])
def test_the_api_keeps_its_errors_for_browsers(api, method, path):
    answer = api.client.open(path, method=method, headers={**BROWSER, "Authorization": f"Bearer {api.key}"})

    assert answer.mimetype == "application/json"
    assert answer.json["error"] in ("There is no such path", "This path does not take this method")


@pytest.mark.parametrize("path", ["/", "/nothing", "/users"])
@pytest.mark.parametrize("accepted", [None, "*/*", "application/json"])
def test_a_program_gets_the_errors_of_the_api(app, path, accepted):
    headers = {} if accepted is None else {"Accept": accepted}
    answer = app.test_client().get(path, headers=headers)

    assert (answer.status_code, answer.json["error"]) == (404, "There is no such path")


def test_there_is_an_icon(app):
    answer = app.test_client().get("/favicon.ico")

    assert (answer.status_code, answer.data[:4]) == (200, b"\0\0\1\0")
    assert answer.headers["Cache-Control"] == "public, max-age=86400"
