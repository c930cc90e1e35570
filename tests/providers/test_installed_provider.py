"""A provider that an installed package adds, in the real service: nothing but its folder knows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
import requests
from bs4 import BeautifulSoup

from app.cli import administrator_setup
from store.sql.queries import api_keys
from tests import http_server
from tests.http_server import KeepAliveHandler
from tests.installation.builder import installed

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).parent / "installed"
PASSWORD = "correct horse battery staple"

DAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=7)
HOURS = {"start": (DAY + timedelta(hours=9)).isoformat(), "end": (DAY + timedelta(hours=12)).isoformat()}
MEETING = tuple(int((DAY + timedelta(hours=each)).timestamp() * 1000) for each in (10, 11))


@dataclass
class Notes:
    """A server of notes, one for each person, at ``url``; ``status`` is that of all answers."""

    url: str
    status: int = 200
    busy: list[tuple[int, int]] = field(default_factory=lambda: [MEETING])

    def of(self, name: str) -> str:
        return f"{self.url}/{name}"


@pytest.fixture
def notes():
    class Handler(KeepAliveHandler):
        def do_GET(self):
            status = 404 if self.path == "/nobody" else found.status
            note = {"email": f"{self.path[1:]}@example.com", "busy": found.busy}
            self.reply(status, orjson.dumps(note))

    server = http_server.start(Handler)
    found = Notes(f"http://127.0.0.1:{server.server_port}")
    yield found
    http_server.stop(server)


@pytest.fixture(scope="module")
def made(environment, tmp_path_factory):
    """An installation in which the package is installed."""
    folder = tmp_path_factory.mktemp("installed")
    with installed(environment, folder, PYTHONPATH=str(PACKAGE)) as made:
        yield made


def connect(made, user, url, **more):
    return made.call("POST", f"/users/{user}/connections", json={"provider": "notes", "url": url}, **more)


@pytest.fixture
def ada(made, notes, unique):
    """A user whose note is connected."""
    user = made.user(unique("ada"))
    answer = connect(made, user, notes.of(user))
    assert answer.status_code == 201, answer.text
    return user


def test_a_form_connects_an_account(made, notes, unique):
    user = made.user(unique("ada"))

    first, again, other = [connect(made, user, notes.of(name)) for name in ("ada", "ada", "bob")]

    assert [each.status_code for each in (first, again, other)] == [201, 200, 201]
    connection = first.json()["data"]
    assert connection["provider"] == "notes"
    assert connection["type"] == "feed"
    assert connection["email"] == "ada@example.com"
    assert connection["alive"]
    assert connection["expiresAt"] is None
    (listed,) = made.get(f"/users/{user}/oauth").json()["data"]
    assert listed["email"] == "ada@example.com"
    both = made.get(f"/users/{user}/connections").json()["data"]
    assert [(each["email"], each["default"]) for each in both] == [
        ("ada@example.com", True),
        ("bob@example.com", False),
    ]
    assert again.json()["data"]["id"] == connection["id"]


def test_what_was_entered_is_never_shown(made, notes, ada):
    with made.stores.database.writing() as session:
        key = api_keys.create(session, prefix="alm_", name="shows", shows_tokens=True)
    answers = [
        made.get(path, {"Authorization": f"Bearer {key}"}, showToken="true")
        for path in (f"/users/{ada}/oauth", f"/users/{ada}/oauth/notes", f"/users/{ada}/oauth/notes/token")
    ]

    assert [each.status_code for each in answers] == [200, 200, 400]
    assert notes.url not in "".join(each.text for each in answers)
    assert notes.url not in made.output()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"provider": "notes"}, "url"),
        ({"provider": "notes", "url": ""}, "url"),
        ({"provider": "notes", "url": 1}, "url"),
        ({"provider": "google", "url": "https://a"}, "accessToken"),
        ({"url": "https://a"}, "provider"),
    ],
)
def test_a_field_that_is_wrong_is_named(made, unique, body, param):
    answer = made.call("POST", f"/users/{made.user(unique('ada'))}/connections", json=body)

    assert answer.status_code == 400
    assert (answer.json()["code"], answer.json()["param"]) == ("validationFailed", param)


@pytest.mark.parametrize(
    ("name", "at_server", "status", "code", "param"),
    [
        ("nobody", 200, 400, "validationFailed", "url"),
        ("ada", 401, 401, "authorizationInvalid", None),
        ("ada", 500, 502, "providerError", None),
    ],
)
def test_an_account_that_cannot_be_read_is_not_stored(
    made, notes, unique, name, at_server, status, code, param
):
    user, notes.status = made.user(unique("ada")), at_server

    answer = connect(made, user, notes.of(name))

    assert answer.status_code == status
    assert (answer.json()["code"], answer.json().get("param")) == (code, param)
    assert made.get(f"/users/{user}/oauth").json()["data"] == []


def test_its_calendars_are_listed(made, ada):
    (calendar,) = made.get(f"/users/{ada}/calendar").json()["data"]

    assert (calendar["provider"], calendar["id"], calendar["subject"]) == ("notes", "main", "My note")


def test_its_times_are_busy(made, ada):
    answer = made.get(f"/users/{ada}/calendar/busy", **HOURS)

    (busy,) = answer.json()["data"]
    assert [datetime.fromisoformat(busy[edge]).hour for edge in ("start", "end")] == [10, 11]


@pytest.fixture
def organization(made, ada, unique):
    """An organization with the user as its member."""
    slug = unique("team")
    assert made.call("POST", "/organizations", json={"slug": slug, "name": "Team"}).ok
    assert made.call("POST", f"/organizations/{slug}/members", json={"userIds": [ada]}).ok
    return slug


def test_slots_leave_its_times_out(made, ada, organization):
    query = HOURS | {"slotDuration": 60}

    of_user = made.get(f"/users/{ada}/scheduling", **query).json()["data"]
    of_organization = made.get(f"/organizations/{organization}/scheduling", **query).json()["data"]

    for answer in (of_user, of_organization):
        starts = [datetime.fromisoformat(each["start"]) for each in answer["availableSlots"]]
        assert [start.hour for start in starts] == [9, 11]


def test_a_server_that_is_down_is_never_free(made, notes, ada, organization):
    notes.status = 500

    busy = made.get(f"/users/{ada}/calendar/busy", {"Cache-Control": "no-cache"}, **HOURS)
    slots = made.get(
        f"/organizations/{organization}/scheduling",
        {"Cache-Control": "no-cache"},
        **HOURS | {"slotDuration": 60},
    )

    assert (busy.status_code, busy.json()["code"]) == (502, "providerError")
    assert [each["userId"] for each in slots.json()["failedUsers"]] == [ada]
    assert slots.json()["data"]["availableSlots"] == []


def test_credentials_that_the_server_rejects_are_said_and_replaced(made, notes, ada):
    notes.status = 401

    answer = made.get(f"/users/{ada}/calendar/busy", {"Cache-Control": "no-cache"}, **HOURS)

    assert (answer.status_code, answer.json()["code"]) == (401, "authorizationInvalid")
    (connection,) = made.get(f"/users/{ada}/connections").json()["data"]
    assert (connection["lastRead"]["ok"], connection["lastRead"]["reason"]) == (False, "authorizationInvalid")
    notes.status = 200
    assert connect(made, ada, notes.of(ada)).status_code == 200
    assert made.get(f"/users/{ada}/oauth/notes").json()["data"]["alive"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/users/{}/oauth/notes/link"),
        ("POST", "/users/{}/oauth/notes/authorize"),
        ("POST", "/users/{}/oauth/notes"),
    ],
)
def test_it_has_no_consent(made, ada, method, path):
    answer = made.call(method, path.format(ada), json={})

    assert answer.status_code == 400
    assert answer.json()["error"] == "provider must be one of google, microsoft"


def test_links_are_those_of_providers_with_a_consent(made, ada):
    links = made.get(f"/users/{ada}/oauth/links").json()["data"]

    assert [each["provider"] for each in links] == ["google", "microsoft"]


def test_its_calendars_cannot_be_changed(made, ada):
    event = {"subject": "Review", **HOURS}
    answer = made.call("POST", f"/users/{ada}/calendar/events/notes/main", json=event)

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficientScopes")


def test_a_connection_is_deleted(made, ada):
    assert made.call("DELETE", f"/users/{ada}/oauth/notes").status_code == 200
    assert made.get(f"/users/{ada}/oauth").json()["data"] == []


def test_the_document_names_it_where_it_can_answer(made):
    document = made.get("/openapi.json").json()
    paths = document["paths"]

    def providers_of(method, path):
        item = paths[path]
        given = [*item[method].get("parameters", ()), *item.get("parameters", ())]
        schema = next(each for each in given if (each.get("name"), each.get("in")) == ("provider", "path"))[
            "schema"
        ]
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return schema["enum"]

    consented = ["google", "microsoft"]
    account = "/v1/users/{userId}/oauth/{provider}"
    events = "/v1/users/{userId}/calendar/events/{provider}/{calendarId}"
    assert (
        providers_of("get", account) == providers_of("post", events) == [*consented, "caldav", "ics", "notes"]
    )
    assert providers_of("post", account) == providers_of("post", f"{account}/authorize") == consented
    body = document["components"]["schemas"]["AccountBody"]
    assert body["required"] == ["provider"]
    assert body["properties"]["url"]["format"] == "uri"


@pytest.fixture(scope="module")
def signed_in(made):
    """Opens pages of the dashboard as an administrator."""
    administrator_setup.create(made.stores, "ada", PASSWORD)
    with requests.Session() as session:
        session.trust_env = False

        def get(path, **query):
            answer = session.get(f"{made.url}/dashboard{path}", params=query, timeout=30)
            assert answer.status_code == 200, answer.text
            return BeautifulSoup(answer.text, "html.parser")

        token = get("/sign-in").find("input", {"name": "csrf_token"})["value"]
        form = {"name": "ada", "password": PASSWORD, "csrf_token": token}
        assert session.post(f"{made.url}/dashboard/sign-in", form, timeout=30).status_code == 200
        yield get


def test_pages_show_it(signed_in, ada):
    user = signed_in(f"/users/{ada}")
    assert "Notes" in [each.get_text() for each in user.select(".connection h3")]
    assert not user.select(f"form[action$='/{ada}/connect/notes']")
    assert "My note" in signed_in(f"/users/{ada}/calendars").get_text()

    grid = signed_in("/explorer/grid", users=ada, day=DAY.date().isoformat(), days="1", timeZone="UTC")
    assert ada in grid.get_text()
    assert not grid.select(".unread")

    registrations = [each.get_text() for each in signed_in("/settings").select("h2")]
    assert "Notes" not in registrations


def test_the_explorer_marks_a_server_that_is_down(signed_in, notes, ada):
    notes.status = 500

    grid = signed_in(
        "/explorer/grid", users=ada, day=DAY.date().isoformat(), days="1", timeZone="UTC", fresh="1"
    )

    assert "Notes" in grid.get_text()
    assert "could not be read" in grid.get_text()
