"""What counts for a person: the routes of the stored availability, and every route that applies it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, update

from app.availability import profiles
from providers.base import Failed
from providers.errors import Reason
from store.cache.busy_cache import CalendarKey
from store.sql.models import OAuthConnection, User
from store.sql.queries import connection_rows
from store.sql.queries.audit import EVERYTHING
from store.sql.queries.availability_profiles import StoredProfile
from store.sql.queries.connection_rows import ConnectionRef
from tests.app.answers import forget_patience
from tests.app.days import DAY, MORNING, before_thursday, meeting, starts, starts_of
from tests.conftest import Api, connect, stores_of
from tests.store.statements import recorded

pytestmark = pytest.mark.usefixtures("worker")

NOTHING = dict.fromkeys(
    (
        "timeZone",
        "schedules",
        "overrides",
        "calendars",
        "paddingBefore",
        "paddingAfter",
        "minimumNotice",
        "holidays",
    )
)
TEN_TO_TWELVE = {"days": ["thursday"], "start": "10:00", "end": "12:00"}
WEEK = ["monday", "tuesday", "wednesday", "thursday", "friday"]
TOKYO = {"timeZone": "Asia/Tokyo", "schedules": [{"days": WEEK, "start": "9:00", "end": "17:00"}]}
CLOSED = [{"date": "2026-12-03", "windows": []}]
HOURLY = {**DAY, "slotDuration": "60"}


@pytest.fixture
def state(api):
    """State what counts for a user."""

    def put(user, **profile):
        answer = api.put(f"/users/{user}/availability", profile)
        assert answer.status_code == 200, answer.json
        return answer.json["data"]

    return put


def connections_of(api, user):
    """The ids of the user's connections, by provider."""
    with stores_of(api.client.application).database.reading() as session:
        return {
            ref.provider: ref.public_id
            for ref in connection_rows.of_user(session, user, organization_id=None)
        }


def patch(api, user, body):
    return api.call("PATCH", f"/users/{user}/availability", json=body)


class TestRoutes:
    def test_nothing_is_stated_at_first_and_after_it_is_deleted(self, api, ada):
        user = ada()
        path = f"/users/{user}/availability"
        assert api.get(path).json["data"] == NOTHING
        api.put(path, TOKYO)
        assert api.delete(path).json["data"] == {"success": True}
        assert api.get(path).json["data"] == NOTHING
        assert api.delete(path).status_code == 200

    def test_put_replaces_and_answers_in_one_notation(self, api, ada, state):
        user = ada()
        stored = state(
            user,
            timeZone="europe/berlin",
            schedules={"days": ["monday"], "start": "9:00", "end": "00:00"},
            overrides=[{"date": "2026-12-24", "windows": []}],
            paddingBefore="10",
            paddingAfter=5,
            minimumNotice=60,
            holidays={"country": "de", "subdivision": "BY"},
        )
        assert stored == {
            "timeZone": "Europe/Berlin",
            "schedules": [{"days": ["monday"], "start": "09:00", "end": "00:00"}],
            "overrides": [{"date": "2026-12-24", "windows": []}],
            "calendars": None,
            "paddingBefore": 10,
            "paddingAfter": 5,
            "minimumNotice": 60,
            "holidays": {"country": "DE", "subdivision": "BY"},
        }
        assert api.get(f"/users/{user}/availability").json["data"] == stored
        assert state(user, schedules=[], holidays={"country": "JP", "subdivision": None}) == NOTHING | {
            "schedules": [],
            "holidays": {"country": "JP"},
        }

    def test_changes_of_another_client_are_kept(self, api, ada):
        path = f"/users/{ada()}/availability"

        def send(method, etag, body=None):
            return api.call(method, path, json=body, headers={"If-Match": etag})

        first = api.get(path).headers["ETag"]
        stored = send("PUT", first, TOKYO)
        assert (stored.status_code, stored.headers["ETag"]) == (200, api.get(path).headers["ETag"])
        for method, body in (("PUT", TOKYO), ("PATCH", {"paddingBefore": 5}), ("DELETE", None)):
            late = send(method, first, body)
            assert (late.status_code, late.json["code"]) == (412, "availabilityChanged")
        assert api.get(path).json["data"] == stored.json["data"]

        # A proxy that compresses weakens etags.
        changed = send("PATCH", f"W/{stored.headers['ETag']}", {"paddingBefore": 5})
        assert changed.json["data"]["paddingBefore"] == 5
        assert send("DELETE", "*").status_code == 200

    def test_of_two_changes_at_once_one_is_written(self, app, api, ada):
        path = f"/users/{ada()}/availability"
        condition = {"If-Match": api.get(path).headers["ETag"]}

        def write(minutes):
            return Api(app.test_client(), api.key).call(
                "PUT", path, json={"paddingBefore": minutes}, headers=condition
            )

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(write, range(1, 9)))
        assert sorted(each.status_code for each in answers) == [200, *[412] * 7]
        (written,) = [each.json["data"] for each in answers if each.status_code == 200]
        assert api.get(path).json["data"] == written

    def test_patch_changes_a_part_and_null_unstates_it(self, api, ada, state):
        user = ada()
        state(user, paddingBefore=10, minimumNotice=5, **TOKYO)
        assert patch(api, user, {}).json["data"]["paddingBefore"] == 10
        changed = patch(api, user, {"paddingBefore": None, "paddingAfter": 7, "schedules": None})
        assert changed.json["data"] == NOTHING | {
            "timeZone": "Asia/Tokyo",
            "paddingAfter": 7,
            "minimumNotice": 5,
        }

    @pytest.mark.parametrize(
        ("body", "param"),
        [
            ({"timeZone": "Mars/Olympus"}, "timeZone"),
            ({"schedules": [{"days": ["monday"], "start": "9:00", "end": "9:00"}]}, "schedules.0.end"),
            ({"schedules": [{"days": ["moonday"], "start": "9:00", "end": "9:30"}]}, "schedules.0.days.0"),
            ({"overrides": CLOSED * 2}, "overrides.1.date"),
            ({"paddingBefore": 10_081}, "paddingBefore"),
            ({"minimumNotice": -1}, "minimumNotice"),
            ({"holidays": {"country": "XX"}}, "holidays.country"),
            ({"holidays": {"country": "DEU"}}, "holidays.country"),
            ({"holidays": {"country": "DE", "subdivision": "TX"}}, "holidays.subdivision"),
            ({"holidays": {"subdivision": "BY"}}, "holidays.country"),
            ({"calendars": []}, "calendars"),
            ({"calendars": [{"connectionId": "nothing", "calendarId": "x"}]}, "calendars.0.connectionId"),
            ({"calendarIds": ["primary"]}, "calendarIds"),
            ({"padding": 10}, "padding"),
        ],
    )
    def test_a_wrong_field_is_named_and_nothing_is_stored(self, api, ada, body, param):
        user = ada()
        for answer in (api.put(f"/users/{user}/availability", body), patch(api, user, body)):
            assert answer.status_code == 400, answer.json
            assert answer.json["param"] == param
        assert api.get(f"/users/{user}/availability").json["data"] == NOTHING

    def test_a_connection_of_another_user_does_not_count(self, api, ada):
        mine, other = ada(), ada()
        of_other = connections_of(api, other)["google"]
        body = {"calendars": [{"connectionId": of_other, "calendarId": "primary"}]}
        assert api.put(f"/users/{mine}/availability", body).json["param"] == "calendars.0.connectionId"

    def test_keys_of_an_organization_change_their_own_users_only(self, api, new_api, ada, new_organization):
        first, second = new_organization(), new_organization()
        own, shared, foreign = ada(slugs=(first,)), ada(slugs=(first, second)), ada(slugs=(second,))
        bound, reader = new_api(first), new_api(first, read_only=True)
        assert bound.put(f"/users/{own}/availability", TOKYO).status_code == 200
        assert bound.get(f"/users/{shared}/availability").status_code == 200
        assert bound.put(f"/users/{shared}/availability", TOKYO).json["code"] == "userInOtherOrganizations"
        for method in ("GET", "PUT", "PATCH", "DELETE"):
            answer = bound.call(method, f"/users/{foreign}/availability", json={})
            assert answer.json["code"] == "userNotFound"
        assert reader.get(f"/users/{own}/availability").json["data"]["timeZone"] == "Asia/Tokyo"
        assert reader.put(f"/users/{own}/availability", TOKYO).json["code"] == "keyReadOnly"

    def test_changes_are_in_the_audit_log(self, api, ada, state):
        from store.sql.queries import audit

        user = ada()
        state(user, timeZone="Asia/Tokyo")
        state(user, timeZone="Asia/Tokyo")
        api.delete(f"/users/{user}/availability")
        with stores_of(api.client.application).database.reading() as session:
            found = [each for each in audit.page(session, EVERYTHING) if each.subject == user]
        assert [each.action for each in found] == ["deleteAvailability", "changeAvailability"]
        assert found[1].changes == {"timeZone": [None, "Asia/Tokyo"]}

    def test_the_profile_goes_with_the_user_and_stays_with_a_renamed_one(self, api, ada, state, unique):
        user, name = ada(), unique("renamed")
        state(user, **TOKYO)
        assert api.put(f"/users/{user}", {"userId": name}).status_code == 200
        assert api.get(f"/users/{name}/availability").json["data"]["timeZone"] == "Asia/Tokyo"
        assert api.delete(f"/users/{name}").status_code == 200
        assert api.post("/users", {"id": name}).status_code == 201
        assert api.get(f"/users/{name}/availability").json["data"] == NOTHING


class TestSlots:
    def test_hours_are_in_the_zone_of_the_person(self, ada, slots, state):
        user = ada(meeting("01:00", "02:00"))
        state(user, **TOKYO)
        answer = slots(user, **HOURLY)
        # 09:00 to 17:00 in Tokyo is 00:00 to 08:00 in UTC.
        assert starts(answer) == ["00:00", "02:00", "03:00", "04:00", "05:00", "06:00", "07:00"]
        assert answer.json["data"]["options"]["profile"] is True
        assert answer.json["data"]["options"]["timeZone"] == "UTC"

    def test_ignore_leaves_it_out(self, ada, slots, state):
        user = ada()
        without = slots(user).json
        state(user, schedules=[], paddingBefore=60)
        assert starts(slots(user)) == []
        assert slots(user, profile="ignore").json == without

    def test_a_warm_request_issues_no_sql(self, app, api, ada, state, new_organization):
        slug = new_organization()
        users = [ada(slugs=(slug,)) for _ in range(3)]
        for user in users:
            state(user, **TOKYO, holidays={"country": "DE"}, paddingBefore=10, overrides=CLOSED)
        several = {"users": [{"id": user} for user in users]}
        calls = (
            lambda: api.get(f"/users/{users[0]}/scheduling", **HOURLY),
            lambda: api.get(f"/organizations/{slug}/scheduling", **HOURLY),
            lambda: api.post("/users/scheduling", several, query_string=HOURLY),
            lambda: api.post("/scheduling", {"participants": [{"organization": slug}]}, query_string=HOURLY),
        )
        for call in calls:
            assert call().status_code == 200
        with recorded(stores_of(app).database) as statements:
            for call in calls:
                assert call().status_code == 200
                assert statements == []

    @pytest.mark.parametrize("read_before", [True, False])
    def test_the_zone_is_that_of_the_main_calendar_by_default(
        self, api, sandbox, new_user, new_organization, slots, state, read_before
    ):
        account = sandbox.account("google", "emiko@example.com", time_zone="Asia/Tokyo")
        team = new_organization()
        user = new_user(account, slugs=(team,), identified=False)
        if read_before:
            slots(user)
        state(user, schedules=TOKYO["schedules"])
        assert starts(slots(user, **HOURLY))[0] == "00:00"

        api.delete(f"/users/{user}/availability")
        user = new_user(account, slugs=(team,), identified=False)
        state(user, schedules=TOKYO["schedules"])
        of_members = api.get(f"/organizations/{team}/scheduling", **HOURLY).json["data"]["availableSlots"]
        assert starts_of([each for each in of_members if each["userId"] == user])[0] == "00:00"

    def test_a_person_whose_zone_cannot_be_read_is_named(self, api, sandbox, new_user, slots, state):
        account = sandbox.account("google", "emiko@example.com", time_zone="Asia/Tokyo")
        user = new_user(account, identified=False)
        state(user, schedules=TOKYO["schedules"])
        # Only the list of calendars: the busy times could be read.
        sandbox.fault(operation="google.calendarList.list", status=429, reason="rateLimitExceeded")
        answer = slots(user, **HOURLY)
        assert (answer.status_code, answer.json["code"]) == (429, "rateLimited"), answer.json
        sandbox.clear_faults()
        forget_patience(api)
        assert starts(slots(user, **HOURLY))[0] == "00:00"

    def test_calendars_count_for_bookings_although_the_zone_cannot_be_read(self):
        ref = ConnectionRef("c1", "ada", "google", "ada@example.com", frozenset(), True)
        chosen = [{"connectionId": ref.public_id, "calendarId": "team"}]
        stored = StoredProfile(schedules=[TEN_TO_TWELVE], calendars=chosen)
        unread = Failed(Reason.RATE_LIMITED, "The limit is reached")

        profile = profiles.Profile.of(stored, [ref], {"c1": unread})

        assert profile.zone_failed == unread
        assert profiles.counting(profile, [ref]) == (CalendarKey("c1", "team"),)

    def test_a_zone_that_is_not_known_here_counts_as_utc(self, app, ada, slots, state):
        user = ada()
        with stores_of(app).database.writing() as session:
            of_user = (
                OAuthConnection.user_id == select(User.id).where(User.custom_id == user).scalar_subquery()
            )
            session.execute(update(OAuthConnection).where(of_user).values(time_zone="Mars/Olympus_Mons"))
        state(user, schedules=[TEN_TO_TWELVE])
        assert starts(slots(user, **HOURLY)) == ["10:00", "11:00"]

    def test_the_request_wins_for_what_it_states(self, ada, slots, scheduled, state):
        user = ada(meeting("10:00", "10:30"))
        state(user, schedules=[TEN_TO_TWELVE], paddingBefore=30, paddingAfter=30, timeZone="UTC")
        half = {"slotDuration": "30"}
        assert starts(slots(user, **half)) == ["11:00", "11:30"]
        assert starts(slots(user, **half, padding="0")) == ["10:30", "11:00", "11:30"]
        assert starts(slots(user, **half, paddingAfter="0")) == ["10:30", "11:00", "11:30"]
        nine = {"days": ["thursday"], "start": "9:00", "end": "10:00"}
        assert starts(scheduled(user, [nine], **half)) == ["09:00"]
        closing = scheduled(user, None, overrides=CLOSED, **half)
        assert starts(closing) == []
        assert closing.json["data"]["options"]["overrides"] == CLOSED

    def test_dates_of_the_profile_close_days_of_schedules_in_the_request(self, ada, scheduled, state):
        user = ada()
        every = [{"days": WEEK, "start": "00:00", "end": "00:00"}]
        state(user, overrides=CLOSED, timeZone="Asia/Tokyo")
        # The third of December ends at 15:00 UTC in Tokyo.
        assert starts(scheduled(user, every, slotDuration="60"))[0] == "15:00"

    def test_the_daily_window_is_in_the_zone_of_the_request(self, ada, slots, state):
        user = ada()
        state(user, **TOKYO)
        edges = {"earliestTimeEachDay": "08:00", "latestTimeEachDay": "09:00"}
        answer = slots(user, {"X-Timezone": "Europe/Berlin"}, **HOURLY, **edges)
        assert starts(answer) == ["07:00"]

    def test_a_holiday_closes_the_day_unless_an_override_opens_it(self, ada, slots, state):
        user = ada()
        christmas = {"start": "2026-12-25", "end": "2026-12-26", "slotDuration": "720"}
        state(user, holidays={"country": "DE"})
        assert starts(slots(user, **christmas)) == []
        opened = [{"date": "2026-12-25", "windows": [{"start": "00:00", "end": "12:00"}]}]
        state(user, holidays={"country": "DE"}, overrides=opened)
        assert len(starts(slots(user, **christmas))) == 1

    def test_notice_counts_unless_the_request_states_it(self, ada, slots, state, monkeypatch):
        monkeypatch.setattr("app.availability.profiles.now_ms", lambda: 1_796_288_400_000)
        user = ada()
        # The moment is 09:00 on that Thursday.
        state(user, minimumNotice=60)
        assert starts(slots(user)) == ["10:00", "11:00"]

    def test_several_users_each_with_their_own(self, api, ada, state):
        tokyo, plain = ada(), ada()
        state(tokyo, **TOKYO)
        berlin = {"timeZone": "Europe/Berlin", "schedules": [TEN_TO_TWELVE]}
        users = [{"id": tokyo}, {"id": plain}, {"id": plain, **berlin}, {"id": tokyo, **berlin}]
        entries = api.post("/users/scheduling", {"users": users}, query_string=HOURLY).json["data"]
        found = [starts_of(each["availableSlots"]) for each in entries]
        assert found[0] == [f"{hour:02}:00" for hour in range(8)]
        assert len(found[1]) == 24
        assert found[2] == found[3] == ["09:00", "10:00"]
        assert [each["options"].get("profile") for each in entries] == [True, None, None, True]
        assert [each["options"]["timeZone"] for each in entries] == ["UTC", "UTC"] + ["Europe/Berlin"] * 2

    def test_members_of_an_organization_each_with_their_own(self, api, ada, state, new_organization):
        slug = new_organization()
        tokyo, plain = ada(slugs=(slug,)), ada(slugs=(slug,))
        state(tokyo, **TOKYO)
        data = api.get(f"/organizations/{slug}/scheduling", **HOURLY).json["data"]
        assert [each["start"][11:16] for each in data["availableSlots"] if each["userId"] == tokyo] == [
            f"{hour:02}:00" for hour in range(8)
        ]
        assert len([each for each in data["availableSlots"] if each["userId"] == plain]) == 24
        assert data["options"]["profile"] is True
        ignored = api.get(f"/organizations/{slug}/scheduling", **HOURLY, profile="ignore").json["data"]
        assert "profile" not in ignored["options"]
        assert len(ignored["availableSlots"]) == 48

    def test_a_changed_profile_counts_at_once(self, api, ada, state, new_organization):
        slug = new_organization()
        user = ada(slugs=(slug,))
        organization = f"/organizations/{slug}/scheduling"
        for profile, count in ((TOKYO, 8), ({"schedules": []}, 0), ({}, 24)):
            state(user, **profile)
            assert len(starts(api.get(organization, **HOURLY))) == count
            assert len(starts(api.get(f"/users/{user}/scheduling", **HOURLY))) == count


class TestGroups:
    @pytest.fixture
    def shared(self, api):
        """The shared slots of groups."""
        return lambda participants, query=None, **body: api.post(
            "/scheduling", {"participants": participants, **body}, query_string=HOURLY | (query or {})
        )

    def test_people_in_two_zones_share_what_is_day_for_both(self, ada, state, shared):
        tokyo, berlin = ada(), ada()
        state(tokyo, **TOKYO)
        state(
            berlin, **TOKYO | {"timeZone": "Europe/Berlin", "schedules": [TEN_TO_TWELVE | {"start": "8:00"}]}
        )
        answer = shared([{"users": [tokyo, berlin]}])
        assert starts(answer) == ["07:00"]
        assert answer.json["data"]["options"]["profile"] is True

    def test_a_group_has_windows_of_its_own(self, ada, shared):
        first, second = ada(), ada()
        own = {"schedules": [TEN_TO_TWELVE], "timeZone": "Europe/Berlin"}
        answer = shared([{"users": [first], **own}, {"users": [second]}])
        assert starts(answer) == ["09:00", "10:00"]
        twice = shared([{"users": [first], **own}, {"users": [first], "schedules": [TEN_TO_TWELVE]}])
        assert starts(twice) == ["10:00"]
        assert starts(shared([{"users": [first]}], schedules=[TEN_TO_TWELVE])) == ["10:00", "11:00"]

    def test_who_is_missing_is_explained_by_their_hours(self, api, ada, state):
        tokyo, plain = ada(), ada()
        state(tokyo, **TOKYO)
        answer = api.post(
            "/scheduling/explain",
            {"participants": [{"users": [tokyo, plain]}]},
            query_string=HOURLY | {"at": "2026-12-03T12:00:00Z"},
        ).json["data"]
        (missing,) = answer["groups"][0]["missing"]
        assert (missing["userId"], missing["reason"]) == (tokyo, "outsideWindow")
        assert f"{tokyo}'s working hours (09:00 to 17:00 in Asia/Tokyo)" in missing["sentence"]

    def test_the_least_booked_come_first(self, api, ada, shared, new_organization):
        slug = new_organization()
        busy = ada(meeting("01:00", "03:00"), slugs=(slug,))
        idle = ada(slugs=(slug,))
        long_ago = {"start": "2026-11-20T09:00:00Z", "end": "2026-11-20T18:00:00Z"}
        recent = ada(
            {"start": "2026-11-28T09:00:00Z", "end": "2026-11-28T10:00:00Z"}, long_ago, slugs=(slug,)
        )
        groups = [{"users": [busy, recent, idle], "required": 2}]
        assert shared(groups).json["data"]["availableSlots"][9]["users"] == [busy, recent, idle]
        least = shared(groups, {"order": "leastBusy"}).json["data"]["availableSlots"]
        assert least[9]["users"] == [idle, recent, busy]
        assert least[1]["users"] == [idle, recent]
        plain, ordered = (
            [each["userId"] for each in starts_at_nine(api.get(f"/organizations/{slug}/scheduling", **query))]
            for query in (HOURLY, HOURLY | {"order": "leastBusy"})
        )
        assert plain == sorted([busy, idle, recent])
        assert ordered == [idle, recent, busy]


def starts_at_nine(answer):
    return [each for each in answer.json["data"]["availableSlots"] if each["start"][11:16] == "09:00"]


TEAM = "team@group.calendar.google.com"


class TestCalendars:
    @pytest.fixture
    def user(self, api, sandbox, new_user, state):
        """A user whose second calendar and second account count, and whose main calendar does not."""
        google = sandbox.account(
            "google",
            "ada@example.com",
            calendars=[{"primary": True}, {"id": TEAM}],
            events=[meeting("09:00", "10:00"), meeting("10:00", "11:00", calendarId=TEAM)],
        )
        microsoft = sandbox.account("microsoft", "ada@contoso.example", events=[meeting("11:00", "11:30")])
        user = new_user(google, microsoft)
        ids = connections_of(api, user)
        state(
            user,
            calendars=[
                {"connectionId": ids["google"], "calendarId": TEAM},
                {"connectionId": ids["microsoft"], "calendarId": "primary"},
            ],
        )
        return user

    def test_they_are_read_instead_of_the_main_ones_on_every_route(self, api, user, slots, new_organization):
        slug = new_organization()
        api.post(f"/organizations/{slug}/members", {"userIds": [user]})
        half = MORNING | {"slotDuration": "30"}
        expected = ["09:00", "09:30", "11:30"]
        assert starts(slots(user, **half)) == expected
        assert starts(api.get(f"/organizations/{slug}/scheduling", **half)) == expected
        several = api.post("/users/scheduling", {"users": [{"id": user}]}, query_string=half).json["data"]
        assert starts_of(several[0]["availableSlots"]) == expected
        assert several[0]["calendarIds"][0] == TEAM
        shared = api.post("/scheduling", {"participants": [{"users": [user]}]}, query_string=half)
        assert starts(shared) == expected

    def test_the_request_may_name_others(self, user, slots):
        half = {"slotDuration": "30"}
        assert starts(slots(user, **half, calendarIds="primary"))[0] == "10:00"
        assert starts(slots(user, **half, primaryOnly="false")) == ["11:30"]
        assert starts(slots(user, **half, provider="microsoft"))[:4] == ["09:00", "09:30", "10:00", "10:30"]
        assert starts(slots(user, **half, profile="ignore"))[0] == "10:00"

    def test_a_calendar_that_cannot_be_read_is_never_free(self, api, sandbox, user, slots):
        sandbox.fault(provider="microsoft", status=403)
        assert slots(user).status_code == 403

    def test_holds_and_creates_read_them_and_name_the_busy_ones(self, api, user, monkeypatch):
        before_thursday(monkeypatch)
        ids = connections_of(api, user)
        nine = meeting("09:00", "09:30")
        ten = meeting("10:00", "11:30")
        taken = api.post("/holds", {"users": [user], **ten})
        assert taken.status_code == 409
        assert [
            (each["start"][11:16], [calendar["connectionId"] for calendar in each["calendars"]])
            for each in taken.json["conflicts"]
        ] == [("10:00", [ids["google"], ids["microsoft"]])]
        assert taken.json["conflicts"][0]["calendars"][0]["calendarId"] == TEAM
        hold = api.post("/holds", {"users": [user], **nine})
        assert hold.status_code == 201, hold.json
        assert api.delete(f"/holds/{hold.json['data']['id']}").status_code == 200
        path = f"/users/{user}/calendar/events/microsoft/primary"
        made = api.post(path, ten, query_string={"ifFree": "true"})
        assert (made.status_code, made.json["code"]) == (409, "slotTaken")
        assert api.post(path, nine, query_string={"ifFree": "true"}).status_code == 201

    def test_what_is_held_for_one_is_held_for_whoever_reads_the_other(
        self, api, sandbox, user, new_user, state, monkeypatch
    ):
        before_thursday(monkeypatch)
        account = sandbox.account("google", "bruno@example.com")
        bruno = new_user(account)
        ids = connections_of(api, bruno)
        state(bruno, calendars=[{"connectionId": ids["google"], "calendarId": TEAM}])
        held = api.post("/holds", {"users": [user], **meeting("09:00", "09:30")})
        assert held.status_code == 201, held.json
        other = api.post("/holds", {"users": [bruno], **meeting("09:00", "09:30")})
        assert other.status_code == 409

    def test_they_stay_when_the_same_account_is_connected_again(self, api, sandbox, user):
        account = sandbox.account("google", "ada@example.com", calendars=[{"primary": True}, {"id": TEAM}])
        connect(api, user, account)
        stored = api.get(f"/users/{user}/availability").json["data"]["calendars"]
        assert {each["connectionId"] for each in stored} == set(connections_of(api, user).values())
        other = sandbox.account("google", "other@example.com")
        connect(api, user, other)
        stored = api.get(f"/users/{user}/availability").json["data"]["calendars"]
        assert [each["calendarId"] for each in stored] == ["primary"]

    def test_the_main_ones_count_again_when_nothing_else_is_left(self, api, user, slots):
        api.delete(f"/users/{user}/oauth/microsoft")
        connect_other = api.get(f"/users/{user}/availability").json["data"]["calendars"]
        assert [each["calendarId"] for each in connect_other] == [TEAM]
        assert starts(slots(user))[0] == "09:00"

    def test_what_does_not_count_is_named_in_explanations(self, user, explain):
        data = explain(user, "09:30").json["data"]
        assert data["offered"]
        assert data["sentence"].endswith("Calendars that do not count: ada@example.com.")
        named = explain(user, "09:30", calendarIds="primary").json["data"]
        assert "do not count" not in named["sentence"]


class TestBookings:
    @pytest.fixture(autouse=True)
    def november(self, monkeypatch):
        before_thursday(monkeypatch)

    def test_time_outside_the_hours_is_taken(self, api, ada, state):
        user = ada()
        state(user, timeZone="UTC", schedules=[TEN_TO_TWELVE])
        body = {"users": [user], **meeting("09:30", "10:30")}
        answer = api.post("/holds", body)
        assert answer.json["conflicts"] == [
            {
                "userId": user,
                "start": "2026-12-03T09:30:00.000Z",
                "end": "2026-12-03T10:00:00.000Z",
                "reason": "outsideWindow",
            }
        ]
        assert api.post("/holds", body | {"profile": "ignore"}).status_code == 201

    def test_paddings_are_those_of_each_user(self, api, ada, state):
        padded, plain = ada(meeting("09:00", "10:00")), ada(meeting("09:00", "10:00"))
        state(padded, paddingAfter=30)
        ten = meeting("10:00", "10:30")
        both = api.post("/holds", {"users": [padded, plain], **ten})
        assert [each["userId"] for each in both.json["conflicts"]] == [padded]
        assert api.post("/holds", {"users": [padded, plain], **ten, "padding": 0}).status_code == 201

    def test_paddings_count_for_held_time_too(self, api, ada, state):
        padded, plain = ada(), ada()
        state(padded, paddingAfter=30)
        first = api.post("/holds", {"users": [padded, plain], **meeting("09:00", "10:00")})
        assert first.status_code == 201
        second = api.post("/holds", {"users": [padded, plain], **meeting("10:00", "10:30")})
        assert [each["userId"] for each in second.json["conflicts"]] == [padded]
        assert api.post("/holds", {"users": [plain], **meeting("10:00", "10:30")}).status_code == 201

    def test_an_event_moves_within_the_hours_only(self, api, ada, state):
        user = ada()
        path = f"/users/{user}/calendar/events/google/primary"
        made = api.post(path, meeting("10:00", "11:00")).json["data"]["id"]
        state(user, timeZone="UTC", schedules=[TEN_TO_TWELVE])
        move = {"query_string": {"ifFree": "true"}}
        assert api.put(f"{path}/{made}", meeting("10:30", "11:30"), **move).status_code == 200
        assert api.put(f"{path}/{made}", meeting("11:30", "12:30"), **move).status_code == 409
        ignored = {"query_string": {"ifFree": "true", "profile": "ignore"}}
        assert api.put(f"{path}/{made}", meeting("11:30", "12:30"), **ignored).status_code == 200


class TestExplanations:
    @pytest.mark.parametrize(
        ("profile", "at", "part"),
        [
            (TOKYO, "12:00", "it lies outside {user}'s working hours (09:00 to 17:00 in Asia/Tokyo)."),
            ({"overrides": CLOSED}, "12:00", "{user} does not work on 3 December 2026 (in UTC)."),
            (
                {"overrides": [{"date": "2026-12-03", "windows": [{"start": "14:00", "end": "00:00"}]}]},
                "12:00",
                "outside {user}'s working hours on 3 December 2026 (14:00 to midnight in UTC).",
            ),
            (
                {"schedules": [{"days": ["monday"], "start": "9:00", "end": "10:00"}]},
                "12:00",
                "{user} does not work on Thursdays (in UTC).",
            ),
        ],
    )
    def test_hours_are_said_in_words(self, api, ada, state, profile, at, part):
        user = ada()
        state(user, **profile)
        answer = api.get(f"/users/{user}/scheduling/explain", **HOURLY, at=f"2026-12-03T{at}:00Z").json[
            "data"
        ]
        assert answer["reason"] == "outsideWindow"
        assert answer["options"]["profile"] is True
        assert part.format(user=user) in answer["sentence"]

    def test_holidays_are_named(self, api, ada, state):
        user = ada()
        state(user, holidays={"country": "DE"})
        range_ = {"start": "2026-12-24", "end": "2026-12-28", "at": "2026-12-25T12:00:00Z"}
        sentence = api.get(f"/users/{user}/scheduling/explain", **range_).json["data"]["sentence"]
        assert f"25 December 2026 is Christmas Day, a holiday on which {user} does not work." in sentence

    def test_members_and_several_users_are_explained_alike(self, api, ada, state, new_organization):
        slug = new_organization()
        tokyo, plain = ada(slugs=(slug,)), ada(slugs=(slug,))
        state(tokyo, **TOKYO)
        at = HOURLY | {"at": "2026-12-03T12:00:00Z"}
        alone = api.get(f"/users/{tokyo}/scheduling/explain", **at).json["data"]["sentence"]
        members = api.get(f"/organizations/{slug}/scheduling/explain", **at).json["data"]
        assert members["offeredBy"] == [plain]
        assert {each["userId"]: each["sentence"] for each in members["members"]}[tokyo] == alone
        users = {"users": [{"id": tokyo}]}
        several = api.post("/users/scheduling/explain", users, query_string=at).json["data"]
        assert several[0]["sentence"] == alone


class TestParameters:
    def test_they_are_refused_where_they_mean_nothing(self, api, ada):
        user = ada()
        assert api.get(f"/users/{user}/scheduling", **MORNING, order="leastBusy").json["param"] == "order"
        assert api.get(f"/users/{user}/scheduling", **MORNING, order="request").status_code == 200
        assert api.get(f"/users/{user}/scheduling", **MORNING, profile="no").json["param"] == "profile"
        assert api.get(f"/users/{user}/calendar/busy", **MORNING, profile="ignore").status_code == 200
