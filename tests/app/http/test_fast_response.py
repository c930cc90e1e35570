"""``JsonResponse`` and the fast context, compared with what they bypass."""

from __future__ import annotations

import flask
from flask import Response, current_app, g, request
from hypothesis import given
from hypothesis import strategies as st

from app.http.fast_context import current_application, current_globals, current_request
from app.http.fast_response import JsonResponse

NAMES = ("Age", "X-Failed-Calendars", "Link", "RateLimit-Limit")
headers = st.dictionaries(st.sampled_from(NAMES), st.text("abc019;=<>/ ", max_size=20), max_size=4)
# Changes that hooks make to a response.
changes = st.lists(
    st.sampled_from(
        [
            lambda response: response.headers.setdefault("X-Content-Type-Options", "nosniff"),
            lambda response: response.headers.set("X-Request-Id", "abc"),
            lambda response: response.vary.add("Origin"),
            lambda response: response.set_data(b"compressed"),
            lambda response: setattr(response, "status_code", 404),
            lambda response: setattr(response, "status_code", 304),
        ]
    ),
    max_size=4,
)


def sent(response: Response, method: str) -> tuple[str, dict[str, str], bytes]:
    """The parts of a response that a server receives."""
    got: list[tuple[str, list[tuple[str, str]]]] = []
    environ = {"REQUEST_METHOD": method, "wsgi.url_scheme": "http", "HTTP_HOST": "almanac.example"}
    body = b"".join(response(environ, lambda status, headers, *_: got.append((status, headers))))
    [(status, pairs)] = got
    assert len(dict(pairs)) == len(pairs)
    return status, dict(pairs), body


@given(st.binary(max_size=50), headers, changes, st.sampled_from(["GET", "POST", "HEAD"]), st.booleans())
def test_a_json_response_is_sent_as_werkzeug_sends_it(body, given_headers, edits, method, streamed):
    def content():
        return iter([body[:9], body[9:]]) if streamed else body

    fast = JsonResponse(content(), given_headers)
    plain = Response(content(), 200, given_headers, mimetype="application/json")
    for edit in edits:
        edit(fast)
        edit(plain)
    assert sent(fast, method) == sent(plain, method)
    assert (fast.status, fast.mimetype, fast.is_streamed) == (plain.status, plain.mimetype, plain.is_streamed)


def test_the_fast_context_is_behind_the_proxies():
    app = flask.Flask(__name__)
    with app.test_request_context("/some/path"):
        assert current_request() is request._get_current_object()
        assert current_globals() is g._get_current_object()
        assert current_application() is current_app._get_current_object() is app
