"""Addresses that people enter, and what is behind them, over real sockets."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator

import pytest

from providers.base import Token
from providers.caldav import discovery, identifiers
from providers.caldav.credentials import BasicCredentials, basic
from providers.caldav.server import MAX_BYTES, Server
from providers.errors import AuthorizationInvalid, FieldRefused, ProviderError, RateLimited, Unavailable
from providers.http.calls import Bearer
from providers.scopes import Operation
from tests.http_server import Handler, serving
from tests.providers.caldav.scripted import (
    ACCOUNT,
    CALENDAR,
    HOMES,
    KIND,
    Script,
    multistatus,
    response,
    scripted,
)


class Fixed:
    """User name and password, which nothing replaces."""

    def access_token(self, *, deadline: float) -> Token:
        return Token(basic("ada", "secret"))

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        raise AuthorizationInvalid("CalDAV does not accept this user name and password")


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted() as found:
        yield found


def found_at(
    entered: str, *, allow_private: bool = True, seconds: float = 10, main: str | None = None
) -> BasicCredentials:
    server = Server(Bearer(Fixed()), Operation.LIST_CALENDARS, time.monotonic() + seconds, allow_private)
    url = discovery.address(entered, allow_private=allow_private)
    known = {} if main is None else {f"{url}me/": identifiers.calendar_id(main)}
    return discovery.discover(server, url, "ada", "secret", known)[0]


@pytest.mark.parametrize("path", ["", "/", "/dav/", CALENDAR])
def test_an_account_is_found_from_its_host_and_from_an_address_in_it(script, path):
    found = found_at(script.url + path)
    assert found.homes == (f"{script.url}/home/",)
    assert found.principal == f"{script.url}/me/"
    assert found.main == f"{script.url}{CALENDAR}"
    assert found.addresses == ("ada@example.org",)
    assert found.calendar == (f"{script.url}{CALENDAR}" if path == CALENDAR else None)


def test_user_name_and_password_are_sent_at_once(script):
    found_at(script.url)
    assert {headers["Authorization"] for _, _, headers, _ in script.requests} == {"Basic YWRhOnNlY3JldA=="}


def test_the_main_calendar_is_the_default_of_the_server(script):
    script.say(
        "PROPFIND",
        "/me/",
        multistatus(
            response(
                "/me/",
                "<c:calendar-home-set><d:href>/home/</d:href></c:calendar-home-set>"
                "<c:schedule-inbox-URL><d:href>/in/</d:href></c:schedule-inbox-URL>",
            )
        ),
    )
    default = "<c:schedule-default-calendar-URL><d:href>/home/zz/</d:href></c:schedule-default-calendar-URL>"
    script.say("PROPFIND", "/in/", multistatus(response("/in/", default)))
    both = (response(CALENDAR, KIND), response("/home/zz/", KIND))
    script.say("PROPFIND", "/home/", multistatus(*both))
    assert found_at(script.url).main == f"{script.url}/home/zz/"
    # Without an inbox it is the first by its path, in whatever order the server lists them.
    script.say("PROPFIND", "/in/", (404, b"", {}))
    script.say("PROPFIND", "/home/", multistatus(*reversed(both)))
    assert found_at(script.url).main == f"{script.url}{CALENDAR}"


def test_the_main_calendar_of_a_connected_account_stays_while_it_exists(script):
    both = (response(CALENDAR, KIND), response("/home/zz/", KIND))
    script.say("PROPFIND", "/home/", multistatus(*both))
    stays = f"{script.url}/home/zz/"
    assert found_at(f"{script.url}/").main == f"{script.url}{CALENDAR}"
    assert found_at(f"{script.url}/", main=stays).main == stays
    script.say("PROPFIND", "/home/", multistatus(response(CALENDAR, KIND)))
    assert found_at(f"{script.url}/", main=stays).main == f"{script.url}{CALENDAR}"


@pytest.mark.parametrize("spelled", ["/p/ada%40example.org", "/p/%61da@example.org/", "/p/ada@example.org/"])
def test_an_account_has_one_id_however_its_server_spells_it(script, spelled):
    for path in ("/dav/", spelled):
        script.say("PROPFIND", path, multistatus(response(path, ACCOUNT.replace("/me/", spelled) + HOMES)))
    assert found_at(script.url).account_id == f"{script.url}/p/ada@example.org/"
    assert found_at(f"{script.url}{spelled}").account_id == f"{script.url}/p/ada@example.org/"


def test_an_account_that_is_connected_again_at_another_host_keeps_its_main_calendar(script):
    both = (response(CALENDAR, KIND), response("/home/zz/", KIND))
    script.say("PROPFIND", "/home/", multistatus(*both))
    known = {"https://old.example.org/me/": identifiers.calendar_id("https://old.example.org/home/zz/")}
    server = Server(Bearer(Fixed()), Operation.LIST_CALENDARS, time.monotonic() + 10, allow_private=True)

    def main(reconnects: str | None) -> str:
        url = f"{script.url}/"
        return discovery.discover(server, url, "ada", "secret", known, reconnects=reconnects)[0].main

    assert main(None) == f"{script.url}{CALENDAR}"
    assert main("https://old.example.org/me/") == f"{script.url}/home/zz/"
    with pytest.raises(FieldRefused, match="to another account"):
        main("https://old.example.org/you/")


def test_an_address_in_the_account_that_is_no_calendar_is_refused(script):
    with pytest.raises(FieldRefused, match=r"leads to no calendar for events.* are at: /home/") as refused:
        found_at(f"{script.url}/home/wrok/")
    assert refused.value.field == "url"


def test_a_host_that_was_not_found_is_a_wrong_address():
    with pytest.raises(FieldRefused, match="names a host that was not found") as refused:
        found_at("https://almanac-tests.invalid/")
    assert refused.value.field == "url"


READ_ONLY = (
    "<d:current-user-privilege-set><d:privilege><d:read/></d:privilege></d:current-user-privilege-set>"
)
TASKS = '<c:supported-calendar-component-set><c:comp name="VTODO"/></c:supported-calendar-component-set>'


def test_a_calendar_that_cannot_be_written_is_main_only_without_another(script):
    script.say(
        "PROPFIND",
        "/home/",
        multistatus(
            response("/home/a/", KIND + READ_ONLY),
            response("/home/b/", KIND + TASKS),
            response("/home/c/", KIND),
        ),
    )
    assert found_at(script.url).main == f"{script.url}/home/c/"
    script.say("PROPFIND", "/home/", multistatus(response("/home/a/", KIND + READ_ONLY)))
    assert found_at(script.url).main == f"{script.url}/home/a/"


LOGIN = (200, b"<!doctype html><html><body>Sign in</body></html>", {"Content-Type": "text/html"})


@pytest.mark.parametrize(
    "answer", [LOGIN, (404, b"", {}), (405, b"", {}), (501, b"", {}), (403, b"no", {}), (200, b"", {})]
)
def test_a_page_that_is_no_server_refuses_the_url(script, answer):
    for path in ("/.well-known/caldav", "/", "/login"):
        script.say("PROPFIND", path, answer)
    with pytest.raises(FieldRefused, match="no CalDAV server") as raised:
        found_at(f"{script.url}/login")
    assert raised.value.field == "url"


def test_the_address_of_a_single_event_is_refused(script):
    script.say(
        "PROPFIND",
        f"{CALENDAR}one.ics",
        multistatus(
            response(
                f"{CALENDAR}one.ics",
                "<d:resourcetype/><d:getcontenttype>text/calendar; component=vevent</d:getcontenttype>",
            )
        ),
    )
    with pytest.raises(FieldRefused, match="single event"):
        found_at(f"{script.url}{CALENDAR}one.ics")


@pytest.mark.parametrize(
    "homes",
    [
        response("/me/", "<d:displayname>Ada</d:displayname>"),
        response("/me/", "<c:calendar-home-set/>"),
        response("/me/", "<c:calendar-home-set/>", "404 Not Found"),
    ],
)
def test_an_account_without_calendars_is_refused(script, homes):
    script.say("PROPFIND", "/me/", multistatus(homes))
    with pytest.raises(FieldRefused, match="without calendars"):
        found_at(script.url)


def test_a_home_without_a_calendar_for_events_is_refused(script):
    script.say("PROPFIND", "/home/", multistatus(response("/home/b/", KIND + TASKS)))
    with pytest.raises(FieldRefused, match="without a calendar"):
        found_at(script.url)


def test_a_wrong_password_is_told_from_a_wrong_address(script):
    script.say("PROPFIND", "/dav/", (401, b"", {"WWW-Authenticate": 'Basic realm="x"'}))
    with pytest.raises(AuthorizationInvalid):
        found_at(script.url)


def test_a_throttle_and_an_outage_say_so(script):
    script.say("PROPFIND", "/dav/", (429, b"", {"Retry-After": "30"}))
    with pytest.raises(RateLimited) as raised:
        found_at(script.url)
    assert raised.value.retry_after == 30
    script.say("PROPFIND", "/dav/", (503, b"", {"Retry-After": "40"}))
    with pytest.raises(Unavailable) as unavailable:
        found_at(script.url)
    assert unavailable.value.retry_after == 40


# Addresses, and redirects to them.


@pytest.mark.parametrize(
    "entered",
    [
        "",
        "ftp://dav.example.org",
        "https://ada:secret@dav.example.org/",
        "https://dav.example.org/#top",
        "http://dav.example.org/",
        "https://dav example.org/",
        "https:///",
    ],
)
def test_an_address_that_cannot_be_called_is_refused(entered):
    with pytest.raises(FieldRefused) as raised:
        discovery.address(entered, allow_private=False)
    assert raised.value.field == "url"


def test_a_host_without_a_scheme_means_https():
    assert discovery.address(" Dav.Example.org ", allow_private=False) == "https://dav.example.org/"


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "[::1]", "localhost", "169.254.169.254"])
def test_a_private_address_is_not_called(host):
    with pytest.raises(FieldRefused, match="private"):
        found_at(f"https://{host}/", allow_private=False, seconds=5)


def test_no_connection_is_opened_to_a_private_address():
    """The name is public when it is checked first, and the socket of the server is never reached."""
    seen: list[str] = []

    class Counting(Handler):
        def do_PROPFIND(self) -> None:
            seen.append(self.path)
            self.reply(404)

    with serving(Counting) as url, pytest.raises(FieldRefused, match="private"):
        found_at(url.replace("http://", "https://"), allow_private=False, seconds=5)
    assert seen == []


def test_a_redirect_without_end_is_an_error(script):
    script.say("PROPFIND", "/dav/", (302, b"", {"Location": "/dav/"}))
    with pytest.raises(FieldRefused, match="no CalDAV server"):
        found_at(script.url)
    assert script.count("PROPFIND", "/dav/") <= 12


# Bodies.


def test_an_answer_beyond_ten_mebibytes_is_not_read(script):
    padding = b" " * MAX_BYTES
    good = script.answers["PROPFIND", "/me/"]
    assert isinstance(good, tuple)
    script.say("PROPFIND", "/me/", (207, good[1] + padding[: MAX_BYTES - len(good[1])], {}))
    found_at(script.url)
    script.say("PROPFIND", "/me/", (207, good[1] + padding[: MAX_BYTES - len(good[1]) + 1], {}))
    with pytest.raises(ProviderError, match="longer than 10 MiB"):
        found_at(script.url)
    script.say("PROPFIND", "/me/", (207, gzip.compress(b" " * 200_000_000, 1), {"Content-Encoding": "gzip"}))
    before = script.count("PROPFIND", "/me/")
    with pytest.raises(ProviderError, match="longer than 10 MiB"):
        found_at(script.url)
    assert script.count("PROPFIND", "/me/") == before + 1


ENTITY = b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
OUTSIDE = b'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize("declaration", [ENTITY, OUTSIDE])
def test_xml_with_entities_is_unreadable(script, declaration):
    good = script.answers["PROPFIND", "/me/"]
    assert isinstance(good, tuple)
    body = declaration + good[1].partition(b"?>")[2].replace(b"/home/", b"/home/&a;")
    script.say("PROPFIND", "/me/", (207, body, {}))
    with pytest.raises(ProviderError, match="unreadable"):
        found_at(script.url)


@pytest.mark.parametrize(
    "body",
    [
        b"<a>" * 100_000,
        b"<a>" * 1000 + b"</a>" * 1000,
        b"<d:multistatus xmlns:d='DAV:'>" + b"<d:x/>" * 300_000 + b"</d:multistatus>",
        b"<?xml version='1.0' encoding='no-such'?><a/>",
        b"<d:multistatus xmlns:d='DAV:'><d:response/></d:multistatus>",
        b"\xff\xfe<\x00",
    ],
)
def test_xml_beyond_the_bounds_is_unreadable(script, body):
    script.say("PROPFIND", "/me/", (207, body, {}))
    with pytest.raises(ProviderError, match="unreadable"):
        found_at(script.url)
