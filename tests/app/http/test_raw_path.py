"""Paths and queries as they were sent: any text arrives unchanged, and none can reach another path."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

import flask
import pytest
from flask import Flask
from hypothesis import example, given
from hypothesis import strategies as st
from werkzeug.test import EnvironBuilder, TestResponse

from app.http import error_handlers, paths, requests, responses
from app.http.parsing import parse
from app.openapi.document import Api
from app.schemas.fields import CONTROL

IDS = [
    *("a/b", "/", "//", "a#b", "a?b=c&d", "100%", "%2F", "%252F", "%", "%zz", "a+b", " a b ", ";a=b"),
    *("a:b@c", "über/Ünïcode", "日本語🎉", "e\u0301", "\ufffd", "...", "./..", "../../secret", "~a"),
    *('a"b\\c|d^e`f{g}[h]<i>', "AAMkAGI1-_=", "x" * 1024, "日" * 2048, "🎉" * 2048),
]
USER = "/users/nobody/calendar/events/google"


def heard(path: str) -> TestResponse:
    """The two identifiers that a route receives for a path."""
    app = requests.Flask(__name__)
    app.url_map.strict_slashes = app.url_map.merge_slashes = False
    app.config.update(API_TITLE="x", API_VERSION="v1", OPENAPI_VERSION="3.1.0")
    paths.install(app)
    requests.install(app)
    responses.install(app)
    error_handlers.install(app)
    paths.check_identifiers(app)
    Api(app)
    app.add_url_rule("/c/<calendar_id:calendarId>/e/<event_id:eventId>", "event", lambda **ids: ids)
    app.add_url_rule("/m/<meta_id:metaId>", "meta", lambda **ids: ids)
    return app.test_client().get(path, base_url="http://localhost")


def segment(identifier: str) -> str:
    return quote(identifier, safe="")


@pytest.mark.parametrize("identifier", IDS)
def test_an_identifier_arrives_as_it_was_meant(identifier):
    response = heard(f"/c/{segment(identifier)}/e/{segment(identifier[::-1])}")

    assert response.json == {"calendarId": identifier, "eventId": identifier[::-1]}
    assert heard(f"/m/{segment(identifier)}").json == {"metaId": identifier}


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_any_text_arrives_as_it_was_meant_or_is_refused(calendar, event):
    response = heard(f"/c/{segment(calendar)}/e/{segment(event)}")

    if any(CONTROL.search(each) or each in (".", "..") for each in (calendar, event)):
        assert response.status_code == 404
    else:
        assert response.json == {"calendarId": calendar, "eventId": event}


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("a+b", "a+b"),
        ("a%2fb", "a/b"),
        ("a%2Fb", "a/b"),
        ("%61%2F%25%32%46", "a/%2F"),
        ("%e2%82%ac", "€"),
        ("€", "€"),
        ("a;b=c,d@e:f!$&'()*", "a;b=c,d@e:f!$&'()*"),
        ("a?b=c", "a"),
        ("a%3Fb%23c?d#e", "a?b#c"),
        ("a%20b", "a b"),
    ],
)
def test_escapes_are_undone_once_in_any_spelling(sent, meant):
    assert heard(f"/m/{sent}").json == {"metaId": meant}


@pytest.mark.parametrize(
    "sent",
    ["%FF", "%E2%82", "a%C3/", "%C0%AF", "%ED%A0%80", "%", "a%", "%z1", "%2", "%%32F", "%2%35", "%E2%82%2F"],
)
def test_what_is_no_text_is_refused(sent):
    assert refused(heard(f"/m/{sent}"), 404) == "Event not found"


@pytest.mark.parametrize(
    "sent",
    ["%00", "a%0A", "%0D%0Aa", "%E2%80%A8", "x" * 2049, ".", "..", "%2E%2E", "%2e"],
)
def test_foreign_ids_that_cannot_exist_are_not_found(sent):
    assert refused(heard(f"/m/{sent}"), 404) == "Event not found"
    assert refused(heard(f"/c/{sent}/e/x"), 404) == "Calendar not found"
    assert refused(heard(f"/c/x/e/{sent}"), 404) == "Event not found"


@pytest.mark.parametrize(
    "path", ["/m/", "/m", "/c//e/x", "/c/x/e/", "/m/a/b", "/m//a", "/m/a//", "/%2Fm/a", "%2Fm/a"]
)
def test_other_segments_are_other_paths(path):
    assert refused(heard(path), 404) == "There is no such path"


def test_dots_do_not_climb():
    assert refused(heard("/c/x/../../m/a"), 404) == "There is no such path"
    assert refused(heard("/c/x/%2E%2E/%2E%2E/m/a"), 404) == "There is no such path"
    assert heard("/m/..%2F..%2Fc").json == {"metaId": "../../c"}


def refused(answer: TestResponse, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.json["data"] is None
    return str(answer.json["error"])


# --- request lines


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("/m/a%2Fb", "/m/a%2Fb"),
        ("/m/a%2Fb?c=/d%2Fe", "/m/a%2Fb"),
        ("/m/a%2Fb#c", "/m/a%2Fb"),
        ("http://almanac.example/m/a%2Fb", "/m/a%2Fb"),
        ("HTTPS://almanac.example:8443/m/a%2Fb?x", "/m/a%2Fb"),
        ("http://almanac.example", "/"),
        ("//m/a%2Fb", "/%2Fm/a%2Fb"),
        ("///m/a", "/%2F%2Fm/a"),
        ("/http://m/a", "/http://m/a"),
        ("*", "*"),
        ("/%6D/%E2%82%AC", "/m/\xe2\x82\xac"),
        ("/m/%FF", "/m/%FF"),
    ],
)
def test_the_path_is_made_from_the_request_line(raw, path):
    for name in ("RAW_URI", "REQUEST_URI"):
        environ = {"PATH_INFO": as_served(raw), name: raw}
        assert paths.path_info(environ) == path


def as_served(raw: str) -> str:
    """The path of a request line as a server's environment has it."""
    path = re.split("[?#]", re.sub("^[A-Za-z]+://[^/?#]*", "", raw))[0]
    return unquote_to_bytes(path or "/").decode("latin1")


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        # Mounted by the server, which took its part off.
        ({"SCRIPT_NAME": "/api", "RAW_URI": "/api/m/a%2Fb", "PATH_INFO": "/m/a/b"}, "/m/a%2Fb"),
        # Mounted by a proxy, which took its part off before the request came.
        ({"SCRIPT_NAME": "/api", "RAW_URI": "/m/a%2Fb", "PATH_INFO": "/m/a/b"}, "/m/a%2Fb"),
        # Without a request line, or with one of another path, the decoded path is not decoded again.
        ({"PATH_INFO": "/m/a/b"}, "/m/a/b"),
        ({"PATH_INFO": "/m/a%2Fb"}, "/m/a%252Fb"),
        ({"RAW_URI": "/other/a%2Fb", "PATH_INFO": "/m/a/b%41"}, "/m/a/b%2541"),
        ({"RAW_URI": "/other", "REQUEST_URI": "/m/a%2Fb", "PATH_INFO": "/m/a/b"}, "/m/a%2Fb"),
    ],
)
def test_a_path_that_others_changed_is_not_decoded_twice(environ, path):
    assert paths.path_info(environ) == path


def test_the_application_is_found_where_a_proxy_mounted_it(app: Flask):
    answer = app.test_client().get("/v1/openapi.json", base_url="http://localhost/almanac")
    assert answer.status_code == 200


# --- the routes that have such identifiers


@pytest.mark.parametrize("identifier", ["a/b", "100%", "..%2F", "über", "x" * 1024])
def test_the_routes_take_any_identifier(api, identifier):
    calendar, event = segment(identifier), segment(identifier[::-1])
    for answer in (
        api.get(f"{USER}/{calendar}/{event}"),
        api.delete(f"{USER}/{calendar}/{event}"),
        api.put(f"{USER}/{calendar}/{event}", {}),
        api.get(f"/users/nobody/calendar/events/meta/{calendar}"),
    ):
        assert refused(answer, 404) == "User not found"


@pytest.mark.parametrize("sent", ["%FF", "..", "x" * 2049])
def test_identifiers_that_cannot_exist_are_not_found_after_the_key_was_seen(api, sent):
    assert refused(api.get(f"{USER}/{sent}/x"), 404) == "Calendar not found"
    assert refused(api.get(f"{USER}/x/{sent}"), 404) == "Event not found"
    assert refused(api.get(f"/users/nobody/calendar/events/meta/{sent}"), 404) == "Event not found"
    assert api.client.get(f"/v1{USER}/{sent}/x").status_code == 401


def test_an_escaped_slash_in_our_own_identifiers_is_part_of_them(api):
    assert refused(api.get("/users/a%2Fb"), 404) == "User not found"
    assert refused(api.get("/users/ada%"), 404) == "User not found"
    assert refused(api.get("/users/%FFada"), 404) == "User not found"
    assert api.get("/us%65rs").status_code == 200


def test_openapi_documents_length_of_foreign_ids(app):
    parameters = {
        each["name"]: each["schema"]
        for item in app.test_client().get("/v1/openapi.json").json["paths"].values()
        for each in item.get("parameters", ())
    }
    for name in paths.FOREIGN_IDS:
        assert parameters[name] == {"type": "string", "minLength": 1, "maxLength": 2048}


# What matters to a query, and characters of two and four bytes.
SIGNS = st.text(st.sampled_from("ab=&+;%%%0123CcAaEe89 é😀[]"), max_size=30)


@given(SIGNS)
@example("a=1&a=2&b&=c&&d=")
@example("name=%41%E2%82%AC%FF%4&%C3%A9=%C3x+%2B")
@example("name=é%A9%C3é")
def test_the_query_is_what_werkzeug_makes_of_it(query):
    environ = EnvironBuilder().get_environ() | {"QUERY_STRING": query.encode().decode("latin1")}
    ours, theirs = parse(query.encode()), flask.Request(environ).args
    assert list(ours.items(multi=True)) == list(theirs.items(multi=True))
    assert type(ours) is type(theirs)
