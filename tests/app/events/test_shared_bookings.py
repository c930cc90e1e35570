"""Two users who book one mailbox or one calendar, each through a connection of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask

from providers.sandbox.client import Sandbox, SandboxAccount
from store.config.settings import new_secrets
from store.sql.queries import api_keys, organizations
from tests.app.at_provider import NINE, AtProvider
from tests.app.days import MORNING, PROVIDERS, meeting, starts
from tests.conftest import Api, application, connect, settings_of, stores_of
from tests.databases import KINDS, new_database, opened
from tests.installation.processes import running_redis, running_worker
from tests.store.statements import recorded

pytestmark = pytest.mark.usefixtures("worker", "in_november")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
IF_FREE = {"ifFree": "true"}
TEN = meeting("10:00", "11:00")
# The calls that name the calendars of an account.
NAMING = (
    "google.calendarList.list",
    "google.calendarList.get",
    "microsoft.calendars.list",
    "microsoft.calendars.get",
)


@pytest.fixture(scope="module", params=KINDS)
def racing_app(
    request: pytest.FixtureRequest, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Flask]:
    """The web application and a worker, on each kind of database."""
    if request.param == "sqlite":
        request.getfixturevalue("worker")
        yield request.getfixturevalue("app")
        return
    folder = tmp_path_factory.mktemp("racing")
    with ExitStack() as running:
        url = running.enter_context(new_database(request.param, folder))
        secret, encryption = new_secrets()
        ours = environment | {"ALMANAC_DATA_DIR": str(folder), "ALMANAC_DATABASE_URL": url}
        ours |= {"ALMANAC_SECRET_KEY": secret, "ALMANAC_ENCRYPTION_KEYS": encryption}
        settings = settings_of(ours)
        with opened(url) as database:
            database.upgrade()
        running.enter_context(running_redis(folder, settings.redis_socket))
        running.enter_context(running_worker(settings, ours, "racing"))
        yield running.enter_context(application(settings))


@pytest.fixture
def racer(racing_app: Flask) -> Api:
    with stores_of(racing_app).database.writing() as session:
        return Api(racing_app.test_client(), api_keys.create(session, prefix="alm_", name="race"))


@dataclass(frozen=True)
class Booker:
    """A user, and the calendar that the user books, by its id in the user's connection."""

    api: Api
    user: str
    provider: str
    calendar: str

    def again(self) -> Booker:
        """The same with a client of its own, for another thread."""
        return Booker(
            Api(self.api.client.application.test_client(), self.api.key),
            self.user,
            self.provider,
            self.calendar,
        )

    def create(self, when: Any = NINE, **query: str) -> Any:
        path = f"/users/{self.user}/calendar/events/{self.provider}/{self.calendar}"
        return self.api.post(path, when | {"subject": self.user}, query_string=query or IF_FREE)

    def hold(self, when: Any = NINE, **more: Any) -> Any:
        return self.api.post("/holds", {"users": [self.user], **when, **more})

    def slots(self, **query: Any) -> list[str]:
        return starts(self.api.get(f"/users/{self.user}/scheduling", **MORNING, **query))


def user_of(api: Api, unique: Callable[[str], str], account: SandboxAccount, **changed: Any) -> str:
    user = unique("user")
    assert api.post("/users", {"id": user}).status_code == 201
    connect(api, user, account, **changed)
    return user


def of_one_mailbox(
    api: Api, sandbox: Sandbox, unique: Callable[[str], str], provider: str
) -> tuple[list[Booker], SandboxAccount]:
    """One connection has the e-mail address of the account, the other a wrong one or none."""
    account = sandbox.account(provider, f"{unique('ada')}@example.com")
    wrong = "somebody.else@example.com" if provider == "google" else None
    users = [user_of(api, unique, account), user_of(api, unique, account, email=wrong)]
    return [Booker(api, user, provider, "primary") for user in users], account


def of_one_room(
    api: Api, sandbox: Sandbox, unique: Callable[[str], str], provider: str
) -> tuple[list[Booker], SandboxAccount]:
    """Two accounts with which the main calendar of a room is shared."""
    room = sandbox.account(provider, f"{unique('room')}@example.com")
    bookers = []
    for name in ("ada", "bob"):
        account = sandbox.account(provider, f"{unique(name)}@example.com")
        shared = sandbox.share(room, account)
        bookers.append(Booker(api, user_of(api, unique, account), provider, shared))
    return bookers, room


SHARED = pytest.mark.parametrize("sharing", [of_one_mailbox, of_one_room])


def at_once(calls: list[Callable[[], Any]]) -> list[int]:
    with ThreadPoolExecutor(len(calls)) as threads:
        return sorted(answer.status_code for answer in threads.map(lambda call: call(), calls))


@BOTH
@SHARED
def test_of_simultaneous_creates_through_two_users_exactly_one_writes(
    sharing, provider, racer, sandbox, unique
):
    (one, other), booked = sharing(racer, sandbox, unique, provider)

    assert at_once([each.again().create for each in (one, other, one, other)]) == [201, 409, 409, 409]
    assert len(AtProvider(sandbox, booked).events()) == 1


@BOTH
def test_of_simultaneous_holds_and_creates_of_one_mailbox_exactly_one_succeeds(
    provider, racer, sandbox, unique
):
    (one, other), booked = of_one_mailbox(racer, sandbox, unique, provider)
    calls = [one.again().hold, other.again().hold, one.again().create, other.again().create]

    assert at_once(calls) == [201, 409, 409, 409]
    held = [each for user in (one, other) for each in racer.get("/holds", user=user.user).json["data"]]
    assert len(held) + len(AtProvider(sandbox, booked).events()) == 1


@BOTH
def test_a_hold_of_the_room_itself_keeps_others_from_it(provider, racer, sandbox, unique):
    (one, _), room = of_one_room(racer, sandbox, unique, provider)
    owner = Booker(racer, user_of(racer, unique, room), provider, "primary")

    assert owner.hold().status_code == 201

    refused = one.create()
    assert refused.status_code == 409
    # Their own id, and not that of the user who holds the room.
    assert [each["userId"] for each in refused.json["conflicts"]] == [one.user]
    # Only the room is taken.
    assert one.hold().status_code == 201


@BOTH
def test_two_organizations_of_one_mailbox_book_it_once(provider, racing_app, racer, sandbox, unique):
    account = sandbox.account(provider, f"{unique('ada')}@example.com")
    bookers = []
    for slug in (unique("acme"), unique("rival")):
        user = user_of(racer, unique, account)
        assert racer.post("/organizations", {"slug": slug, "name": None}).status_code == 200
        assert racer.post(f"/organizations/{slug}/members", {"userIds": [user]}).status_code == 201
        with stores_of(racing_app).database.writing() as session:
            number = organizations.ids(session, [slug], organization_id=None)[slug]
            key = api_keys.create(session, prefix="alm_", name=slug, organization_id=number)
        bookers.append(Booker(Api(racing_app.test_client(), key), user, provider, "primary"))
    one, other = bookers

    assert one.hold(note="secret").status_code == 201

    assert other.slots() == ["10:00", "11:00"]
    refused = other.create()
    assert refused.status_code == 409
    assert "secret" not in refused.text
    assert one.user not in refused.text
    assert other.api.get("/holds").json["data"] == []


@BOTH
def test_held_time_of_a_mailbox_is_not_offered_through_another_user(provider, api, sandbox, unique):
    (one, other), _ = of_one_mailbox(api, sandbox, unique, provider)
    # Warm before the hold.
    assert [other.slots() for _ in range(2)] == [["09:00", "10:00", "11:00"]] * 2

    hold = one.hold().json["data"]["id"]

    assert other.slots() == ["10:00", "11:00"]
    # A hold counts as one busy period, also where it takes the user and the mailbox.
    assert one.slots(maxOverlaps=1) == other.slots(maxOverlaps=1) == ["09:00", "10:00", "11:00"]
    assert one.create(hold=hold).status_code == 201
    assert other.slots() == ["10:00", "11:00"]


@BOTH
def test_the_first_slots_of_an_unidentified_connection_leave_out_held_time(provider, api, sandbox, unique):
    (one, other), _ = of_one_mailbox(api, sandbox, unique, provider)
    assert one.hold().status_code == 201

    assert other.slots() == ["10:00", "11:00"]


@BOTH
def test_held_time_of_a_room_is_not_offered_by_its_calendar(provider, api, sandbox, unique):
    (one, _), room = of_one_room(api, sandbox, unique, provider)
    owner = Booker(api, user_of(api, unique, room), provider, "primary")
    assert owner.hold().status_code == 201

    for _ in range(2):
        assert one.slots(calendarIds=one.calendar) == ["10:00", "11:00"]
        assert one.slots() == ["09:00", "10:00", "11:00"]


@BOTH
def test_a_user_stays_held_when_the_connection_changes(provider, api, sandbox, unique):
    (one, _), _ = of_one_mailbox(api, sandbox, unique, provider)
    hold = one.hold().json["data"]["id"]
    assert one.slots() == ["10:00", "11:00"]

    connect(api, one.user, sandbox.account(provider, f"{unique('new')}@example.com"))

    assert one.slots() == ["10:00", "11:00"]
    assert one.create().status_code == 409
    # Warm through the new connection, which the hold has never named.
    assert one.slots() == ["10:00", "11:00"]
    assert api.delete(f"/holds/{hold}").status_code == 200
    assert one.slots() == ["09:00", "10:00", "11:00"]


@BOTH
def test_held_time_counts_together_with_busy_periods(provider, api, sandbox, unique):
    (one, other), booked = of_one_mailbox(api, sandbox, unique, provider)
    AtProvider(sandbox, booked).post()
    assert other.hold(maxOverlaps=1).status_code == 201

    # One meeting and one hold.
    assert one.slots(maxOverlaps=1)[0] == "10:00"
    assert one.create(ifFree="true", maxOverlaps="1").status_code == 409
    assert one.hold(maxOverlaps=1).status_code == 409
    assert one.slots(maxOverlaps=2)[0] == "09:00"
    assert one.hold(maxOverlaps=2).status_code == 201
    assert one.slots(maxOverlaps=2)[0] == "10:00"


@BOTH
def test_paddings_mean_the_same_for_slots_holds_and_creates(provider, api, sandbox, unique):
    (one, other), _ = of_one_mailbox(api, sandbox, unique, provider)
    assert other.hold(TEN).status_code == 201
    before, after = {"paddingBefore": "15"}, {"paddingAfter": "15"}
    eleven, nine = meeting("11:00", "12:00"), NINE

    # Kept free before the held time, so until ten.
    assert (one.slots(**before), one.slots(**after)) == (["11:00"], ["09:00", "11:15"][:1])
    assert one.create(nine, **IF_FREE, **before).status_code == 409
    assert one.create(eleven, **IF_FREE, **after).status_code == 409
    assert one.hold(nine, paddingBefore=15).status_code == 409
    assert one.hold(eleven, paddingAfter=15).status_code == 409
    assert one.hold(nine, paddingAfter=15).status_code == 201
    assert one.create(eleven, **IF_FREE, **before).status_code == 201


def test_a_hold_of_a_named_calendar_leaves_the_main_one_to_others(api, sandbox, unique):
    team = f"{unique('team')}@group.calendar.google.com"
    account = sandbox.account(
        "google", f"{unique('ada')}@example.com", calendars=[{"primary": True}, {"id": team}]
    )
    one, other = (Booker(api, user_of(api, unique, account), "google", "primary") for _ in range(2))
    named = {"users": [{"id": one.user, "calendarIds": [team]}], **NINE}
    assert api.post("/holds", named).status_code == 201

    assert other.slots() == ["09:00", "10:00", "11:00"]
    assert other.hold().status_code == 201


@BOTH
def test_a_named_calendar_is_held_through_connections_that_are_identified_now(provider, api, sandbox, unique):
    bookers, _ = of_one_room(api, sandbox, unique, provider)
    named = [{"users": [{"id": each.user, "calendarIds": [each.calendar]}], **NINE} for each in bookers]

    assert [api.post("/holds", each).status_code for each in named] == [201, 409]


@BOTH
def test_a_hold_of_a_user_counts_for_a_calendar_that_it_does_not_name(provider, api, sandbox, unique):
    team = {"google": f"{unique('team')}@group.calendar.google.com", "microsoft": unique("AAMk-team")}
    account = sandbox.account(
        provider, f"{unique('ada')}@example.com", calendars=[{"primary": True}, {"id": team[provider]}]
    )
    user = user_of(api, unique, account)
    one = Booker(api, user, provider, team[provider])
    # Warm before the hold.
    for _ in range(2):
        assert one.slots(calendarIds=one.calendar) == ["09:00", "10:00", "11:00"]

    assert one.hold().status_code == 201

    assert one.slots(calendarIds=one.calendar) == ["10:00", "11:00"]


@pytest.mark.parametrize(
    "refusal",
    [{"status": 403}, {"reason": "insufficientPermissions"}, {"status": 404}, {"reason": "notACalendarUser"}],
    ids=str,
)
def test_a_mailbox_whose_calendars_are_never_named_is_booked_by_its_address(api, sandbox, unique, refusal):
    account = sandbox.account("google", f"{unique('ada')}@example.com")
    one, other = (Booker(api, user_of(api, unique, account), "google", "primary") for _ in range(2))
    for operation in NAMING[:2]:
        sandbox.fault(operation=operation, **refusal)

    assert one.hold().status_code == 201
    assert other.hold().status_code == 409


@BOTH
def test_nothing_is_booked_while_the_mailbox_cannot_be_identified(provider, api, sandbox, unique):
    (one, other), booked = of_one_mailbox(api, sandbox, unique, provider)
    assert one.hold().status_code == 201
    for operation in NAMING:
        sandbox.fault(operation=operation, status=503)

    assert (other.hold().status_code, other.create().status_code) == (502, 502)

    sandbox.clear_faults()
    assert (other.hold().status_code, other.create().status_code) == (409, 409)
    assert AtProvider(sandbox, booked).events() == []


def test_holds_of_others_cost_a_request_nothing(api, sandbox, unique):
    """Neither a statement nor a new load of held time."""
    one, other = (
        Booker(api, user_of(api, unique, account), "google", "primary")
        for account in (sandbox.account("google", f"{unique(name)}@example.com") for name in ("ada", "bob"))
    )
    other.hold(TEN)
    database = stores_of(api.client.application).database

    def slots_and_statements(*beginnings):
        with recorded(database, *beginnings) as statements:
            return one.slots(), statements

    slots_and_statements(), slots_and_statements()
    hold = other.hold().json["data"]["id"]
    assert slots_and_statements() == (["09:00", "10:00", "11:00"], [])
    api.delete(f"/holds/{hold}")
    assert slots_and_statements() == (["09:00", "10:00", "11:00"], [])

    # Its own hold costs one statement, once.
    one.hold()
    found = [slots_and_statements("SELECT") for _ in range(3)]
    assert [slots for slots, _ in found] == [["10:00", "11:00"]] * 3
    assert [len(statements) for _, statements in found] == [1, 0, 0]
