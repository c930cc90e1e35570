"""CORS is off unless a setting allows the origin, and a preflight needs no key."""

from __future__ import annotations

import pytest

from store.config.settings import SettingsError
from workers.settings import read_settings

ORIGIN = "https://app.example.com"
PREFLIGHT = {
    "Origin": ORIGIN,
    "Access-Control-Request-Method": "GET",
    "Access-Control-Request-Headers": "authorization",
}
PATHS = ["/v1/users", "/v1/users/ada/scheduling", "/v1/users/ada/calendar/events/google/primary/e1"]


def cors(answer):
    """The CORS headers of an answer."""
    return {name for name, _ in answer.headers if name.startswith("Access-Control-")}


@pytest.fixture
def allowing(api, new_app):
    """An API that allows the origin."""
    api.client = new_app(cors_origins=(ORIGIN, "http://localhost:3000")).test_client()
    return api


@pytest.mark.parametrize("path", PATHS)
def test_options_is_empty_names_the_methods_and_needs_no_key(api, path):
    answer = api.client.options(path)
    assert (answer.status_code, answer.data) == (204, b"")
    assert "Content-Type" not in answer.headers
    assert "GET" in answer.headers["Allow"]
    assert answer.headers["X-Request-Id"]


def test_options_of_an_unknown_path_is_json(api):
    answer = api.client.options("/v1/nothing")
    assert (answer.status_code, answer.json["data"], answer.mimetype) == (404, None, "application/json")


@pytest.mark.parametrize("path", PATHS)
def test_without_the_setting_no_origin_is_allowed(api, path):
    assert cors(api.client.options(path, headers=PREFLIGHT)) == set()
    assert cors(api.get("/users", headers={"Origin": ORIGIN})) == set()


@pytest.mark.parametrize("path", PATHS)
def test_a_preflight_of_an_allowed_origin_is_answered_without_a_key(allowing, path):
    answer = allowing.client.options(path, headers=PREFLIGHT)
    assert (answer.status_code, answer.data) == (204, b"")
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert "GET" in answer.headers["Access-Control-Allow-Methods"]
    allowed = {name.strip().lower() for name in answer.headers["Access-Control-Allow-Headers"].split(",")}
    assert {"authorization", "content-type", "idempotency-key", "x-timezone", "cache-control"} <= allowed
    assert int(answer.headers["Access-Control-Max-Age"]) > 0
    assert "Access-Control-Allow-Credentials" not in answer.headers
    assert "Origin" in answer.headers["Vary"]


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example.com", "https://app.example.com.evil.net", "http://app.example.com", "null", ""],
)
def test_another_origin_is_not_allowed(allowing, origin):
    answer = allowing.client.options("/v1/users", headers=PREFLIGHT | {"Origin": origin})
    assert (answer.status_code, cors(answer)) == (204, set())
    answer = allowing.get("/users", headers={"Origin": origin})
    assert (answer.status_code, cors(answer)) == (200, set())
    # A cache must not give this answer to an origin that is allowed.
    assert "Origin" in answer.headers["Vary"]


@pytest.mark.parametrize("status", [200, 401, 404])
def test_answers_and_errors_can_be_read_by_an_allowed_origin(allowing, status):
    path = "/users/nobody" if status == 404 else "/users"
    key = {"Authorization": "Bearer alm_none"} if status == 401 else {}
    answer = allowing.get(path, headers={"Origin": "http://localhost:3000", **key})
    assert answer.status_code == status
    assert answer.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"
    exposed = {name.strip() for name in answer.headers["Access-Control-Expose-Headers"].split(",")}
    assert {"X-Request-Id", "Retry-After", "Age", "X-Failed-Calendars-Count"} <= exposed


@pytest.mark.parametrize("path", ["/dashboard", "/docs", "/healthz", "/metrics"])
def test_only_the_api_can_be_read(allowing, path):
    assert cors(allowing.client.get(path, headers={"Origin": ORIGIN})) == set()


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "app.example.com",
        "https://app.example.com/",
        "https://a.example.com/x",
        "ftp://a",
        "https://",
        "https://u@a.example.com",
    ],
)
def test_an_origin_that_is_none_stops_the_start(monkeypatch, tmp_path, origin):
    monkeypatch.setenv("ALMANAC_CORS_ORIGINS", f"{ORIGIN},{origin}")
    with pytest.raises(SettingsError, match="ALMANAC_CORS_ORIGINS"):
        read_settings(tmp_path)


def test_origins_are_compared_as_browsers_write_them(monkeypatch, tmp_path):
    monkeypatch.setenv("ALMANAC_CORS_ORIGINS", "https://App.Example.com, http://localhost:3000")
    assert read_settings(tmp_path).cors_origins == (ORIGIN, "http://localhost:3000")
