"""The Python client when requests fail, against a server with scripted answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from almanac_client import (
    Almanac,
    Invalid,
    RateLimited,
    Refused,
    Unavailable,
    UnderWay,
    Unreadable,
    transport,
)
from tests.http_server import Handler, serving

KEY = "alm_very_secret"
ADA = {"data": {"id": "ada"}}


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
            # 0 closes the connection without an answer.
            if status:
                self.reply(
                    status, body.encode() if isinstance(body, str) else json.dumps(body).encode(), headers
                )

        do_GET = do_POST = do_PUT = do_DELETE = answer

    with serving(ScriptedHandler) as url:
        scripted = Server(url)
        yield scripted


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "FIRST_WAIT", 0.001)


@pytest.fixture
def almanac(server: Server) -> Iterator[Almanac]:
    with Almanac(server.url, KEY, timeout=5) as client:
        yield client


DOWN = (503, {"data": None, "error": "Not available for a moment"}, {"Retry-After": "0"})
SLOT = {"start": "2026-12-03", "end": "2026-12-04"}
REPEATED: dict[str, Callable[[Almanac], Any]] = {
    "a read": lambda almanac: almanac.users.get("ada"),
    "a creation": lambda almanac: almanac.users.create("ada"),
    "a question with a body": lambda almanac: almanac.scheduling.user("ada", schedules=[], **SLOT),
}
NOT_REPEATED: dict[str, Callable[[Almanac], Any]] = {
    "a change": lambda almanac: almanac.users.rename("ada", "ada2"),
    "a deletion": lambda almanac: almanac.users.delete("ada"),
    "a link": lambda almanac: almanac.connections.authorize("ada", "google"),
    "a code": lambda almanac: almanac.connections.verify("google", code="c", state="s"),
    "a delivery": lambda almanac: almanac.webhooks.replay("wh_1", "msg_1"),
}


@pytest.mark.parametrize("what", REPEATED)
@pytest.mark.parametrize("failure", [DOWN, (0, ""), (502, "<html>Bad gateway</html>")], ids=str)
def test_what_is_safe_is_repeated(server, almanac, what, failure):
    server.says(failure, failure, (200, ADA))

    REPEATED[what](almanac)

    assert len(server.seen) == 3


@pytest.mark.parametrize("what", NOT_REPEATED)
@pytest.mark.parametrize("failure", [DOWN, (0, "")], ids=str)
def test_what_is_not_safe_is_not_repeated(server, almanac, what, failure):
    server.says(failure, (200, ADA))

    with pytest.raises(Unavailable):
        NOT_REPEATED[what](almanac)

    assert len(server.seen) == 1


def test_a_creation_is_repeated_with_the_key_it_had_and_each_has_its_own(server, almanac):
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


def test_a_first_request_still_under_way_is_waited_for(server, almanac):
    server.says((409, {"data": None, "error": "still under way"}, {"Retry-After": "0"}), (201, ADA))
    assert almanac.users.create("ada") == {"id": "ada"}

    server.says((409, {"data": None, "error": "still under way"}, {"Retry-After": "60"}))
    with pytest.raises(UnderWay):
        almanac.users.create("ada")


def test_a_long_retry_after_is_not_waited_for(server, almanac):
    server.says((429, {"data": None, "error": "Too many"}, {"Retry-After": "3600"}))

    with pytest.raises(RateLimited) as caught:
        almanac.users.get("ada")

    assert (caught.value.retry_after, len(server.seen)) == (3600, 1)


def test_a_refusal_is_not_repeated(server, almanac):
    server.says((400, {"data": None, "error": "start is required"}))

    with pytest.raises(Invalid, match="start is required"):
        almanac.users.get("ada")

    assert len(server.seen) == 1


@pytest.mark.parametrize("body", ["<html>Welcome to the hotel</html>", "[1]", '{"hello": 1}', ""])
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


def test_a_server_that_does_not_listen_is_unavailable(server):
    with Almanac("http://127.0.0.1:9", KEY) as nobody, pytest.raises(Unavailable, match="ConnectionError"):
        nobody.users.get("ada")


def test_the_key_is_in_no_text(server, almanac):
    server.says((400, "<html>"))
    with pytest.raises(Unavailable) as caught:
        almanac.users.get("ada")

    texts = [repr(almanac), str(vars(almanac)), repr(caught.value), str(vars(caught.value))]
    assert not [text for text in texts if KEY in text]


def test_a_netrc_does_not_take_the_place_of_the_key(server, almanac, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.says((200, ADA))

    almanac.users.get("ada")

    assert server.seen[0][2]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("bad", ["", ".", ".."])
def test_an_id_never_leads_to_another_path(server, almanac, bad):
    server.says((200, ADA))

    with pytest.raises(ValueError, match="an id is not"):
        almanac.connections.delete("ada", bad)

    assert server.seen == []


def test_any_other_id_is_one_segment(server, almanac):
    server.says((200, ADA))

    almanac.events.get("ada", "google", "team/a b@example.com", "e?v#1")

    assert server.seen[0][1] == ("/v1/users/ada/calendar/events/google/team%2Fa%20b%40example.com/e%3Fv%231")


def test_a_session_that_was_given_stays_open_and_unchanged(server):
    server.says((200, ADA))
    session = requests.Session()
    closed: list[bool] = []
    session.close = lambda: closed.append(True)
    before = dict(session.headers)

    with Almanac(server.url, KEY, session=session) as almanac:
        almanac.users.get("ada")

    assert closed == []
    assert dict(session.headers) == before


def test_an_address_without_a_scheme_is_refused_at_once():
    with pytest.raises(ValueError, match="https://"):
        Almanac("almanac.example.com", KEY)
