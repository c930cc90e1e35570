"""``send`` over a real socket: timeout, retries, token and errors."""

from __future__ import annotations

import gzip
import socket
import struct
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from providers.base import Token
from providers.errors import (
    AccessDenied,
    AuthorizationInvalid,
    ProviderError,
    RateLimited,
    TokenRejected,
    Unavailable,
)
from providers.event_writes import is_unclear
from providers.google.errors import error_for
from providers.http import send as http
from providers.http import transport
from providers.http.calls import Bearer, Call
from providers.http.send import retry_after, send


def call(script: Any, **more: Any) -> Call:
    return Call("Google Calendar", "calendar.freebusy.query", "POST", f"{script.url}/freeBusy", b"{}", **more)


def sent(script: Any, left: float = 5.0, **more: Any) -> Any:
    return send(call(script, **more), error_for, deadline=time.monotonic() + left)


def test_a_deadline_already_passed_sends_nothing(script):
    script.say(body={})
    with pytest.raises(Unavailable, match="did not answer in time"):
        sent(script, left=0)
    assert script.requests == []


def test_refused_connection_is_reported_as_unsent():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    insert = Call("Google Calendar", "calendar.events.insert", "POST", f"http://127.0.0.1:{port}/", b"{}")
    with pytest.raises(ProviderError) as raised:
        send(insert, error_for, deadline=time.monotonic() + 3)
    assert (raised.value.unsent, raised.value.repeated, is_unclear(raised.value)) == (True, False, False)


def test_a_connection_is_kept_between_calls(script):
    script.say(body={})
    for _ in range(3):
        sent(script)
    assert len({each["peer"] for each in script.requests}) == 1


def test_a_connection_is_kept_after_an_error_too(script):
    script.say(404, {"error": {}})
    for _ in range(3):
        with pytest.raises(ProviderError):
            sent(script)
    assert len({each["peer"] for each in script.requests}) == 1


def test_nothing_of_the_environment_is_used(script, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    script.say(body={"ok": True})
    assert sent(script) == {"ok": True}


def test_cookies_are_not_carried_from_one_account_to_the_next(script):
    script.say(body={}, Set_Cookie="session=alice; Path=/")
    sent(script)
    sent(script)
    assert "Cookie" not in script.requests[1]["headers"]


def test_a_redirect_is_not_followed_with_the_token(script, scripted_account):
    script.say(302, {}, Location=f"{script.url}/elsewhere")
    with pytest.raises(ProviderError, match="status 302"):
        send(call(script), error_for, deadline=time.monotonic() + 5, bearer=Bearer(scripted_account.tokens))
    assert [each["path"] for each in script.requests] == ["/freeBusy"]


@pytest.mark.parametrize(
    "body", [b"", b"<html></html>", b'{"calendars": {', b"[]", b"null", b'"text"', b"\xff"]
)
def test_a_success_that_is_no_json_object_is_unavailable(script, is_fit_for_people, body):
    script.say(body=body)
    with pytest.raises(Unavailable, match="unreadable answer") as raised:
        sent(script)
    is_fit_for_people(raised.value)


def broken_off(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
    handler.close_connection = True


def broken_chunks(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n50\r\nabc")
    handler.close_connection = True


def reset(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def nonsense(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")
    handler.close_connection = True


def wrong_gzip(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}")


@pytest.mark.parametrize("answer", [broken_off, broken_chunks, reset, nonsense, wrong_gzip])
def test_truncated_answer_is_unavailable(script, is_fit_for_people, answer):
    script.act(answer)
    with pytest.raises(Unavailable, match="could not be reached") as raised:
        sent(script)
    is_fit_for_people(raised.value)


def test_an_answer_that_unpacks_beyond_all_bounds_is_unreadable(script, is_fit_for_people):
    # Valid JSON, rejected only for its length.
    packed = gzip.compress(b"{}" + b" " * (transport.MAX_BYTES + 1), compresslevel=1)
    assert len(packed) < transport.MAX_BYTES / 100
    script.say(body=packed, Content_Encoding="gzip")
    with pytest.raises(Unavailable, match="unreadable answer") as raised:
        sent(script, left=60)
    is_fit_for_people(raised.value)


def test_a_server_that_is_not_there_could_not_be_reached(is_fit_for_people):
    nobody = Call("Google Calendar", "calendar.freebusy.query", "GET", "http://127.0.0.1:1/")
    with pytest.raises(Unavailable, match="could not be reached") as raised:
        send(nobody, error_for, deadline=time.monotonic() + 10)
    is_fit_for_people(raised.value)


def test_a_server_that_drips_is_left_at_the_deadline(script):
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        try:
            for _ in range(1000):
                handler.wfile.write(b" ")
                time.sleep(0.05)
        except OSError:
            handler.close_connection = True

    script.act(drip)
    began = time.monotonic()
    with pytest.raises(Unavailable, match="did not answer in time"):
        sent(script, left=0.4)
    assert time.monotonic() - began < 10


class Clock:
    """Replaces ``time`` in a module: records pauses instead of sleeping, and can jump forward."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """The clock of calls."""
    clock = Clock()
    for module in (http, transport):
        monkeypatch.setattr(module, "time", clock)
    return clock


def after(seconds: float, content: bytes = b'{"ok": true}') -> Any:
    """An answer that begins after ``seconds``; without ``content`` its body never comes."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n")
        handler.wfile.write(content)

    return answer


def test_answer_that_stops_after_the_headers_ends_at_deadline(script, clock, is_fit_for_people):
    answer = after(0, content=b"")

    def late(handler: BaseHTTPRequestHandler) -> None:
        clock.ahead = 59.6
        answer(handler)

    script.act(late)
    began = time.monotonic()
    with pytest.raises(Unavailable, match="did not answer in time") as raised:
        sent(script, left=60)
    # The time left after the head, not half of the minute that was left before it.
    assert time.monotonic() - began < 10
    is_fit_for_people(raised.value)


def test_silent_provider_is_retried_after_half_of_the_time(script, monkeypatch):
    monkeypatch.setattr(transport, "MIN_READ_TIMEOUT", 0.5)
    script.act(after(60))
    script.act(after(0))
    began = time.monotonic()
    # The answer comes by the deadline: the first attempt leaves time for another.
    assert sent(script, left=3) == {"ok": True}
    assert time.monotonic() - began >= 1.5
    assert len(script.requests) == 2


def test_a_try_after_which_no_other_fits_has_all_that_is_left(script, monkeypatch):
    monkeypatch.setattr(transport, "MIN_READ_TIMEOUT", 1.3)
    script.act(after(1.4))
    assert sent(script, left=2.5) == {"ok": True}
    assert len(script.requests) == 1


@pytest.mark.parametrize("token", ["gültig", "\u0142", "two words", "line\nfeed", ""])
def test_a_token_no_header_can_carry_is_not_sent_but_renewed(script, scripted_account, token):
    tokens = scripted_account.tokens
    tokens.access = Token(token)
    tokens.renewed = lambda rejected, *, deadline: Token("good")
    script.say(body={"ok": True})
    answer = send(call(script), error_for, deadline=time.monotonic() + 5, bearer=Bearer(tokens))
    assert answer == {"ok": True}
    assert [each["headers"]["Authorization"] for each in script.requests] == ["Bearer good"]


def test_token_that_is_no_valid_header_ends_the_connection(script, scripted_account):
    scripted_account.tokens.access = Token("schlüssel")
    with pytest.raises(TokenRejected) as raised:
        send(call(script), error_for, deadline=time.monotonic() + 5, bearer=Bearer(scripted_account.tokens))
    assert isinstance(raised.value, AuthorizationInvalid)
    assert script.requests == []


def test_a_failing_call_is_made_three_times_and_no_more(script):
    script.say(500, {"error": {}})
    with pytest.raises(Unavailable):
        sent(script)
    assert len(script.requests) == 3


def test_second_retry_backoff_is_doubled_with_half_jitter(script, clock, monkeypatch):
    monkeypatch.setattr(http, "BACKOFF", 0.25)
    script.say(500, {"error": {}})
    for drawn in (min, max):
        monkeypatch.setattr("random.uniform", drawn)
        with pytest.raises(Unavailable):
            sent(script)
    assert clock.pauses == [0.125, 0.25, 0.375, 0.75]


@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 412])
def test_what_cannot_get_better_is_not_tried_again(script, status):
    script.say(status, {"error": {}})
    with pytest.raises(ProviderError):
        sent(script)
    assert len(script.requests) == 1


def test_what_must_not_happen_twice_is_sent_once(script):
    script.say(503, {"error": {}})
    with pytest.raises(Unavailable):
        sent(script, repeatable=False)
    assert len(script.requests) == 1


def test_unrepeatable_call_is_sent_again_after_401(script, scripted_account):
    script.say(401, {"error": {}})
    script.say(body={"id": "event"})
    bearer = Bearer(scripted_account.tokens)
    written = call(script, repeatable=False)
    assert send(written, error_for, deadline=time.monotonic() + 5, bearer=bearer) == {"id": "event"}
    assert len(script.requests) == 2


def test_a_call_that_may_have_been_executed_stays_unclear_when_its_token_has_ended(script, scripted_account):
    script.say(500, {"error": {}})
    script.say(401, {"error": {}})
    script.say(401, {"error": {}})
    with pytest.raises(TokenRejected) as raised:
        send(call(script), error_for, deadline=time.monotonic() + 5, bearer=Bearer(scripted_account.tokens))
    assert raised.value.repeated
    assert is_unclear(raised.value)


def test_a_success_without_a_body_is_one_only_where_none_is_expected(script):
    script.say(204, b"")
    assert sent(script, answers=False) == {}
    with pytest.raises(Unavailable):
        sent(script)


def test_a_bearer_renews_once_over_all_calls_of_an_operation(script, scripted_account):
    script.say(401, {})
    script.say(body={})
    script.say(401, {})
    bearer = Bearer(scripted_account.tokens)
    send(call(script), error_for, deadline=time.monotonic() + 5, bearer=bearer)
    # The call before shows that the grant is valid: only this call is refused.
    with pytest.raises(AccessDenied):
        send(call(script), error_for, deadline=time.monotonic() + 5, bearer=bearer)
    assert scripted_account.tokens.renewals == 1


def test_unavailable_token_source_is_called_once(script):
    class Down:
        asked = 0

        def access_token(self, *, deadline: float) -> Any:
            Down.asked += 1
            raise Unavailable("Google is not available just now")

    with pytest.raises(Unavailable, match="not available"):
        send(call(script), error_for, deadline=time.monotonic() + 5, bearer=Bearer(Down()))
    assert Down.asked == 1


def test_retry_waits_at_least_for_retry_after(script):
    script.say(429, {}, Retry_After="0.5")
    script.say(body={"ok": True})
    assert sent(script) == {"ok": True}
    first, second = (each["at"] for each in script.requests)
    assert second - first >= 0.5


def test_retry_waits_no_longer_than_retry_after(script, clock):
    script.say(429, {}, Retry_After="3")
    script.say(body={"ok": True})
    assert sent(script) == {"ok": True}
    assert clock.pauses == [3.0]


def test_a_date_of_long_ago_means_at_once(script):
    script.say(503, {}, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT")
    script.say(body={"ok": True})
    assert sent(script) == {"ok": True}


def test_a_retry_after_the_deadline_is_skipped_and_its_wait_reported(script):
    script.say(429, {}, Retry_After="3600")
    with pytest.raises(RateLimited) as raised:
        sent(script, left=5)
    assert raised.value.retry_after == 3600
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    "value", [None, "", "soon", "-5", "nan", "inf", "1e9", "²", f"Thu, 01 Jan 2026 00:00:00 +{'9' * 20}"]
)
def test_invalid_retry_after_is_none(value):
    assert retry_after(value) is None


def test_a_retry_after_may_be_a_date():
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 85 < (retry_after(moment) or 0) <= 90


def test_a_call_shows_neither_its_url_nor_its_body(script):
    shown = repr(call(script))
    assert shown == "<Google Calendar calendar.freebusy.query>"
