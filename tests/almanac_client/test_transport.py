"""The Python clients when requests fail, against a server with scripted answers."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest

import almanac_client
from almanac_client import (
    Almanac,
    Invalid,
    NotFound,
    OutcomeUnknown,
    RateLimited,
    Refused,
    RequestFailed,
    Unavailable,
    UnderWay,
    Unreachable,
    Unreadable,
    transport,
)
from almanac_client.messages import Request
from almanac_client.transport import Retries
from tests.almanac_client.clients import KINDS, opened
from tests.http_server import Handler, serving

KEY = "alm_very_secret"
ADA = {"data": {"id": "ada", "createdAt": "2026-11-20T09:00:00.000Z"}}
# Neither is an HTTP status: the connection is closed, or reset, without an answer.
CLOSED, RESET = 0, -1


@dataclass(repr=False)
class Server:
    """Sends ``answers`` in order, and repeats the last one."""

    url: str
    answers: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def says(self, *answers: tuple[int, Any] | tuple[int, Any, dict[str, str]]) -> None:
        self.answers = [(each[0], each[1], each[2] if len(each) > 2 else {}) for each in answers]

    def __repr__(self) -> str:
        return f"<Server at {self.url}>"


@pytest.fixture
def server() -> Iterator[Server]:
    class ScriptedHandler(Handler):
        def answer(self) -> None:
            self.read_body()
            scripted.seen.append((self.command, self.path, dict(self.headers)))
            answers = scripted.answers
            status, body, headers = answers.pop(0) if len(answers) > 1 else answers[0]
            if status == RESET:
                # A socket that does not linger is closed by a reset.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            elif status != CLOSED:
                self.reply(
                    status, body.encode() if isinstance(body, str) else json.dumps(body).encode(), headers
                )

        do_GET = do_POST = do_PUT = do_DELETE = answer

    with serving(ScriptedHandler) as url:
        scripted = Server(url)
        yield scripted


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_PAUSE", 0.001)


@pytest.fixture(params=KINDS)
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Almanac]]:
    """Make a client, of each kind."""
    with ExitStack() as closing:
        yield lambda *args, **named: closing.enter_context(opened(request.param, *args, **named))


@pytest.fixture
def almanac(server: Server, connect: Callable[..., Almanac]) -> Almanac:
    return connect(server.url, KEY, timeout=5)


DOWN = (503, {"data": None, "error": "Not available for a moment"}, {"Retry-After": "0"})
THROTTLED = (429, {"data": None, "error": "Too many", "code": "rateLimited"}, {"Retry-After": "0"})
DAY = {"start": "2026-12-03", "end": "2026-12-04"}
SLOTS = {
    "data": {
        "availableSlots": [],
        "options": {
            "start": "2026-12-03T00:00:00.000Z",
            "end": "2026-12-04T00:00:00.000Z",
            "maxOverlaps": 0,
            "padding": 0,
            "slotDuration": 30,
            "timeZone": "UTC",
        },
    }
}
REPEATED: dict[str, tuple[Callable[[Almanac], Any], Any]] = {
    "a read": (lambda almanac: almanac.users.get("ada"), ADA),
    "a creation": (lambda almanac: almanac.users.create("ada"), ADA),
    "a question with a body": (lambda almanac: almanac.scheduling.user("ada", schedules=[], **DAY), SLOTS),
}
NOT_REPEATED: dict[str, Callable[[Almanac], Any]] = {
    "a change": lambda almanac: almanac.users.rename("ada", "ada2"),
    "a deletion": lambda almanac: almanac.users.delete("ada"),
    "a link": lambda almanac: almanac.connections.authorize("ada", "google"),
    "a code": lambda almanac: almanac.connections.verify("google", code="c", state="s"),
    "a delivery": lambda almanac: almanac.webhooks.replay("wh_1", "msg_1"),
}
FAILURES = [DOWN, THROTTLED, (CLOSED, ""), (RESET, ""), (502, "<html>Bad gateway</html>")]


@pytest.mark.parametrize("what", REPEATED)
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: str(failure[0]))
def test_what_is_safe_is_repeated(server, almanac, what, failure):
    call, answer = REPEATED[what]
    server.says(failure, failure, (200, answer))

    call(almanac)

    assert len(server.seen) == 3


@pytest.mark.parametrize("what", NOT_REPEATED)
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: str(failure[0]))
def test_what_is_not_safe_is_not_repeated(server, almanac, what, failure):
    server.says(failure, (200, ADA))

    with pytest.raises(Unavailable):
        NOT_REPEATED[what](almanac)

    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("request_", "error", "attempt", "again"),
    [
        (Request.get("/users"), Unavailable("down"), 0, True),
        (Request.get("/users"), Unavailable("down"), 2, False),
        (Request("DELETE", "/users/ada"), Unavailable("down"), 0, False),
        (Request("DELETE", "/users/ada"), Unreachable("not sent"), 0, True),
        (Request.get("/users"), Unavailable("down", retry_after=10), 0, True),
        (Request.get("/users"), Unavailable("down", retry_after=11), 0, False),
    ],
)
def test_when_a_request_is_sent_again(request_, error, attempt, again):
    assert (Retries(most=2, longest_pause=10).pause(request_, error, attempt) is not None) == again


def test_retried_create_keeps_its_idempotency_key(server, almanac):
    server.says(DOWN, (200, ADA))
    almanac.users.create("ada")
    almanac.users.create("grace")

    first, again, other = [headers["Idempotency-Key"] for _, _, headers in server.seen]
    assert first == again != other


def test_the_last_error_is_raised(server, almanac):
    server.says(DOWN)

    with pytest.raises(Unavailable, match="Not available for a moment") as caught:
        almanac.users.get("ada")

    assert (caught.value.status, len(server.seen)) == (503, 3)


def test_retries_can_be_turned_off(server, connect):
    server.says(DOWN)

    with pytest.raises(Unavailable):
        connect(server.url, KEY, retries=0).users.get("ada")

    assert len(server.seen) == 1


def test_a_first_request_still_under_way_is_waited_for(server, almanac):
    server.says((409, {"data": None, "error": "still under way"}, {"Retry-After": "0"}), (201, ADA))
    assert almanac.users.create("ada").id == "ada"

    server.says((409, {"data": None, "error": "still under way"}, {"Retry-After": "60"}))
    with pytest.raises(UnderWay):
        almanac.users.create("ada")


def test_a_create_with_an_unknown_outcome_is_repeated_with_its_key(server, almanac):
    unknown = (502, {"data": None, "error": "The event may exist", "code": "outcomeUnknown"})
    server.says(unknown)

    with pytest.raises(OutcomeUnknown) as caught:
        almanac.users.create("ada")

    assert caught.value.code == "outcomeUnknown"
    assert len({headers["Idempotency-Key"] for _, _, headers in server.seen}) == 1
    assert len(server.seen) == 3


@pytest.mark.parametrize(
    "header",
    ["3600", format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)],
    ids=["seconds", "date"],
)
def test_a_long_retry_after_is_not_waited_for(server, almanac, header):
    server.says((429, {"data": None, "error": "Too many"}, {"Retry-After": header}))

    with pytest.raises(RateLimited) as caught:
        almanac.users.get("ada")

    assert caught.value.retry_after == pytest.approx(3600, abs=900)
    assert len(server.seen) == 1


@pytest.mark.parametrize("header", ["soon", "-1", "Thu, 32 Dec 2026 09:00:00 GMT"])
def test_a_retry_after_without_a_meaning_is_as_none(server, almanac, header):
    server.says((503, {"data": None, "error": "Down"}, {"Retry-After": header}), (200, ADA))

    assert almanac.users.get("ada").id == "ada"


def test_a_refusal_is_not_repeated(server, almanac):
    server.says((400, {"data": None, "error": "start is required"}))

    with pytest.raises(Invalid, match="start is required"):
        almanac.users.get("ada")

    assert len(server.seen) == 1


def test_what_a_newer_server_adds_is_ignored(server, almanac):
    connection = {
        "provider": "a provider of tomorrow",
        "email": None,
        "alive": True,
        "expiresAt": None,
        "scope": [],
        "type": "a type of tomorrow",
        "accessToken": None,
        "refreshToken": None,
        "aFieldOfTomorrow": {"a": [1]},
    }
    user = {**ADA["data"], "oauthConnections": [connection], "aFieldOfTomorrow": True}
    server.says((200, {"data": user, "aFieldOfTomorrow": None}))

    (found,) = almanac.users.get("ada").oauth_connections

    assert (found.provider, found.type) == ("a provider of tomorrow", "a type of tomorrow")


@pytest.mark.parametrize("body", ["<html>Welcome to the hotel</html>", "[1]", '{"hello": 1}', "", "\xff"])
def test_an_answer_that_is_not_almanacs_is_unreadable(server, almanac, body):
    server.says((200, body))

    with pytest.raises(Unreadable):
        almanac.users.get("ada")


def test_a_redirect_is_not_followed_with_the_key(server, almanac):
    server.says((302, "", {"Location": f"{server.url}/elsewhere"}))

    with pytest.raises(Unreadable):
        almanac.users.get("ada")

    assert {path for _, path, _ in server.seen} == {"/v1/users/ada"}


def test_an_error_that_is_not_almanacs_is_classified_by_status(server, almanac):
    server.says((410, {"data": None}))

    with pytest.raises(Refused, match="GET /users/ada answered 410"):
        almanac.users.get("ada")


def test_a_server_that_does_not_listen_is_unreachable(connect):
    nobody = connect("http://127.0.0.1:9", KEY)

    with pytest.raises(Unreachable, match="DELETE /users/ada was not sent: ConnectError"):
        nobody.users.delete("ada")


def test_the_key_is_in_no_text(server, almanac):
    server.says((400, "<html>"))
    with pytest.raises(RequestFailed) as caught:
        almanac.users.get("ada")

    texts = [repr(almanac), str(vars(almanac)), repr(caught.value), str(vars(caught.value))]
    assert not [text for text in texts if KEY in text]


def test_a_netrc_does_not_take_the_place_of_the_key(server, almanac, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.says((200, ADA))

    almanac.users.get("ada")

    assert server.seen[0][2]["Authorization"] == f"Bearer {KEY}"


def test_the_user_agent_has_the_version(server, almanac):
    server.says((200, ADA))

    almanac.users.get("ada")

    assert server.seen[0][2]["User-Agent"].startswith(
        f"almanac-python/{almanac_client.__version__} (Python 3"
    )


@pytest.mark.parametrize("bad", ["", ".", ".."])
def test_an_id_never_leads_to_another_path(server, almanac, bad):
    server.says((200, ADA))

    with pytest.raises(ValueError, match="an id is not"):
        almanac.connections.delete("ada", bad)

    assert server.seen == []


def test_any_other_id_is_one_segment(server, almanac):
    server.says((404, {"data": None, "error": "Event not found"}))

    with pytest.raises(NotFound):
        almanac.events.get("ada", "google", "team/a b@example.com", "e?v#1")

    assert server.seen[0][1] == ("/v1/users/ada/calendar/events/google/team%2Fa%20b%40example.com/e%3Fv%231")


def test_an_http_client_that_was_given_stays_open_and_unchanged(server):
    server.says((200, ADA))
    with httpx2.Client(headers={"X-Team": "blue"}, auth=("someone", "else")) as http_client:
        before = dict(http_client.headers)

        with Almanac(server.url, KEY, http_client=http_client) as almanac:
            almanac.users.get("ada")

        assert not http_client.is_closed
        assert dict(http_client.headers) == before
    headers = server.seen[0][2]
    assert (headers["X-Team"], headers["Authorization"]) == ("blue", f"Bearer {KEY}")


def test_the_environment_has_the_address_and_the_key(server, connect, monkeypatch):
    monkeypatch.setenv("ALMANAC_URL", server.url)
    monkeypatch.setenv("ALMANAC_API_KEY", KEY)
    server.says((200, ADA))

    connect().users.get("ada")
    connect(key="alm_another").users.get("ada")

    sent = [headers["Authorization"] for _, _, headers in server.seen]
    assert sent == [f"Bearer {KEY}", "Bearer alm_another"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": KEY}, "base_url is missing: pass it, or set ALMANAC_URL"),
        ({"base_url": "http://127.0.0.1:9"}, "key is missing: pass it, or set ALMANAC_API_KEY"),
        ({"base_url": "almanac.example.com", "key": KEY}, "https://"),
    ],
)
def test_what_a_client_lacks_is_named_at_once(connect, monkeypatch, given, said):
    monkeypatch.delenv("ALMANAC_URL", raising=False)
    monkeypatch.delenv("ALMANAC_API_KEY", raising=False)

    with pytest.raises(ValueError, match=said):
        connect(**given)
