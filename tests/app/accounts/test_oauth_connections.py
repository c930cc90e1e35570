"""OAuth connections, stored from tokens that the caller obtained."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import select

from app.accounts import disconnect
from store.sql.models import AuditRecord
from store.sql.queries import connection_rows
from tests.app.answers import cached, connections_of, error
from tests.app.routes import routes
from tests.conftest import connect

GOOGLE = "https://www.googleapis.com/auth/"
WHEN = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
RANGE = {"start": "2026-12-03", "end": "2026-12-04"}
BODY = {
    "accessToken": "planted-access-token",
    "refreshToken": "planted-refresh-token",
    "email": "ada@example.com",
    "expiresAt": "2026-11-20T09:00:00+01:00",
    "scope": ["https://www.googleapis.com/auth/calendar"],
}
SHOWN = {
    "provider": "google",
    "email": "ada@example.com",
    "alive": True,
    "expiresAt": "2026-11-20T08:00:00.000Z",
    "scope": ["https://www.googleapis.com/auth/calendar"],
    "type": "oauth2",
    "accessToken": None,
    "refreshToken": None,
}


@pytest.fixture
def teller(new_api):
    """A caller who may show tokens."""
    return new_api(shows_tokens=True)


def test_a_connection_is_stored_with_201_and_its_tokens_hidden(api, new_user):
    user = new_user()

    answer = api.post(f"/users/{user}/oauth/google", BODY)

    assert (answer.status_code, answer.json) == (201, {"data": SHOWN})
    assert api.get(f"/users/{user}/oauth/google").json == {"data": SHOWN}
    assert api.get(f"/users/{user}/oauth").json == {"data": [SHOWN]}
    assert api.get(f"/users/{user}").json["data"]["oauthConnections"] == [SHOWN]


def test_three_fields_may_be_null_or_absent(api, new_user):
    user = new_user()
    least = {"accessToken": "planted", "scope": ["Calendars.Read"]}
    nulls = dict.fromkeys(("refreshToken", "email", "expiresAt"))

    for body in (least, least | nulls):
        answer = api.post(f"/users/{user}/oauth/microsoft", body)
        assert answer.status_code == 201
        assert answer.json["data"] == SHOWN | nulls | {"provider": "microsoft", "scope": ["Calendars.Read"]}


@pytest.mark.parametrize(
    ("written", "answered"),
    [
        ("2026-11-20T09:00:00Z", "2026-11-20T09:00:00.000Z"),
        ("2026-11-20T09:00:00", "2026-11-20T09:00:00.000Z"),
        ("2026-11-20T09:00:00.123456+02:00", "2026-11-20T07:00:00.123Z"),
        ("2026-11-20", "2026-11-20T00:00:00.000Z"),
    ],
)
def test_expires_at_without_offset_is_utc(api, new_user, written, answered):
    answer = api.post(f"/users/{new_user()}/oauth/google", BODY | {"expiresAt": written})

    assert answer.json["data"]["expiresAt"] == answered


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"accessToken": None}, "accessToken is required"),
        ({"accessToken": ""}, "accessToken must have 1 to 16384 characters"),
        ({"accessToken": "x" * 16_385}, "accessToken must have 1 to 16384 characters"),
        ({"accessToken": 5}, "accessToken must be a string"),
        ({"accessToken": "a\r\nX-Evil: 1"}, "accessToken must not contain control characters"),
        ({"accessToken": "planted-tök"}, "accessToken must be printable ASCII without spaces"),
        ({"accessToken": "two words"}, "accessToken must be printable ASCII without spaces"),
        ({"refreshToken": "planted…"}, "refreshToken must be printable ASCII without spaces"),
        ({"refreshToken": " planted"}, "refreshToken must be printable ASCII without spaces"),
        ({"refreshToken": "x" * 16_385}, "refreshToken must have 1 to 16384 characters"),
        ({"refreshToken": ""}, "refreshToken must have"),
        ({"refreshToken": "a\x00b"}, "refreshToken must not contain control characters"),
        ({"email": "x"}, "email must have 3 to 320 characters"),
        ({"email": "a\nb@c"}, "email must not contain control characters"),
        ({"email": "ada"}, "email must be an e-mail address"),
        ({"email": "ada@"}, "email must be an e-mail address"),
        ({"email": "@example.com"}, "email must be an e-mail address"),
        ({"email": "ada lovelace@example.com"}, "email must be an e-mail address"),
        ({"email": "ada@example.com\u00a0"}, "email must be an e-mail address"),
        ({"email": "ada@home@example.com"}, "email must be an e-mail address"),
        ({"expiresAt": "soon"}, "expiresAt must be an ISO 8601 date"),
        ({"expiresAt": 1795165200}, "expiresAt must be an ISO 8601 date"),
        ({"scope": None}, "scope is required"),
        ({"scope": 5}, "scope must be an array"),
        ({"scope": " "}, "scope[0] must have 1 to 512 characters"),
        ({"scope": ["a", " "]}, "scope[1] must have 1 to 512 characters"),
        ({"scope": [5]}, "scope[0] must be a string"),
        ({"scope": [""]}, "scope[0] must have 1 to 512 characters"),
        ({"scope": []}, "scope must have 1 to 200 elements"),
        ({"scope": ["s"] * 201}, "scope must have 1 to 200 elements"),
    ],
)
def test_a_bad_body_stores_nothing_and_is_not_repeated(api, new_user, changed, message):
    user = new_user()

    assert error(api.post(f"/users/{user}/oauth/google", BODY | changed), 400).startswith(message)
    assert api.get(f"/users/{user}/oauth").json["data"] == []


@pytest.mark.parametrize("token", ["x", "~!$%*|'\"/+=.-_{}", "1//0gE-x_y", "M.C1_BAY.2!*$$", "x" * 16_384])
def test_tokens_of_every_provider_are_taken_as_they_are(api, teller, new_user, token):
    user = new_user()

    answer = api.post(f"/users/{user}/oauth/google", BODY | {"accessToken": token, "refreshToken": token})

    assert answer.status_code == 201
    shown = teller.get(f"/users/{user}/oauth/google", showToken="true").json["data"]
    assert (shown["accessToken"], shown["refreshToken"]) == (token, token)


@pytest.mark.parametrize(
    "email", ["a@b", "Ada.O'Hara+x@example.co.uk", "ada_x#EXT#@acme.example", "ä@ö.example"]
)
def test_addresses_of_every_kind_are_taken_as_they_are(api, new_user, email):
    answer = api.post(f"/users/{new_user()}/oauth/google", BODY | {"email": email})

    assert answer.json["data"]["email"] == email


@pytest.mark.parametrize(
    "scope",
    [
        "openid  Calendars.ReadWrite offline_access",
        ["openid Calendars.ReadWrite offline_access"],
        ["openid", "Calendars.ReadWrite offline_access"],
        "openid\tCalendars.ReadWrite\noffline_access",
        "openid,Calendars.ReadWrite, offline_access",
    ],
)
def test_scopes_may_be_in_one_string(api, new_user, scope):
    answer = api.post(f"/users/{new_user()}/oauth/microsoft", {"accessToken": "t", "scope": scope})
    assert answer.status_code == 201, answer.text
    assert answer.json["data"]["scope"] == ["openid", "Calendars.ReadWrite", "offline_access"]


def test_posting_again_replaces(api, teller, new_user):
    user = new_user()
    api.post(f"/users/{user}/oauth/google", BODY)

    second = api.post(f"/users/{user}/oauth/google", {"accessToken": "second", "scope": ["other"]})

    assert second.status_code == 201
    assert len(api.get(f"/users/{user}/oauth").json["data"]) == 1
    shown = teller.get(f"/users/{user}/oauth/google", showToken="true").json["data"]
    assert (shown["accessToken"], shown["refreshToken"], shown["email"]) == ("second", None, None)
    assert shown["scope"] == ["other"]


def test_two_providers_are_two_connections_in_order(api, new_user):
    user = new_user()
    for provider in ("microsoft", "google"):
        api.post(f"/users/{user}/oauth/{provider}", BODY)

    listed = api.get(f"/users/{user}/oauth").json
    first = api.get(f"/users/{user}/oauth", limit=1).json
    second = api.get(f"/users/{user}/oauth", limit=1, cursor=first["nextCursor"]).json

    assert [each["provider"] for each in listed["data"]] == ["google", "microsoft"]
    assert [page["data"][0]["provider"] for page in (first, second)] == ["google", "microsoft"]
    assert second["nextCursor"] is None


def test_what_is_missing_is_named(api, new_user):
    user = new_user()
    for answer in (api.get(f"/users/{user}/oauth/google"), api.delete(f"/users/{user}/oauth/google")):
        assert error(answer, 404) == "OAuth connection not found"
    for answer in (
        api.get("/users/nobody/oauth"),
        api.get("/users/nobody/oauth/google"),
        api.post("/users/nobody/oauth/google", BODY),
        api.delete("/users/nobody/oauth/google"),
    ):
        assert error(answer, 404) == "User not found"


# --- tokens


@pytest.mark.parametrize("place", ["/oauth", "/oauth/google"])
def test_showing_tokens_needs_the_permission(api, new_user, place):
    user, unconnected = new_user(), new_user()
    api.post(f"/users/{user}/oauth/google", BODY)

    for each in (user, unconnected):
        answer = api.get(f"/users/{each}{place}", showToken="true")
        assert error(answer, 403) == "This API key may not show tokens"
    assert api.get(f"/users/{user}{place}", showToken="false").status_code == 200
    assert error(api.get(f"/users/{user}{place}", showToken="1"), 400) == "showToken must be true or false"


@pytest.mark.parametrize("place", ["/oauth", "/oauth/google"])
def test_shown_tokens_are_the_stored_ones_and_are_audited(api, teller, new_user, stores, place):
    user = new_user()
    api.post(f"/users/{user}/oauth/google", BODY)

    answer = teller.get(f"/users/{user}{place}", showToken="true")

    data = answer.json["data"]
    assert (data[0] if isinstance(data, list) else data) == SHOWN | {
        "accessToken": "planted-access-token",
        "refreshToken": "planted-refresh-token",
    }
    assert records(stores, user) == [("showToken", f"{user}/google", teller.key[:12])]


def test_nothing_is_written_down_when_nothing_is_shown(api, teller, new_user, stores):
    user = new_user()
    api.post(f"/users/{user}/oauth/google", BODY)

    api.get(f"/users/{user}/oauth/google", showToken="true")
    teller.get(f"/users/{user}/oauth/google")
    teller.get(f"/users/{user}/oauth/microsoft", showToken="true")

    assert records(stores, user) == []


def records(stores, user):
    """The audit records of tokens that were shown of a user."""
    query = select(AuditRecord).where(
        AuditRecord.subject.startswith(f"{user}/"), AuditRecord.action == "showToken"
    )
    with stores.database.reading() as session:
        return [(row.action, row.subject, row.actor) for row in session.scalars(query)]


def test_no_other_answer_ever_holds_a_token(app, teller, api, new_user, new_organization, caplog):
    slug = new_organization()
    user = new_user(slugs=(slug,))
    posted = api.post(f"/users/{user}/oauth/google", BODY)
    texts = [posted.text]
    for method, path, _ in routes(app, userId=user, orgSlug=slug):
        # The calendars are another story: nothing is read here. And one route is there to show a token.
        if method == "GET" and not any(word in path for word in ("calendar", "scheduling", "/token", ".js")):
            texts.append(teller.get(path).text)
    texts.append(api.put(f"/users/{user}", {"userId": user}).text)
    texts.append(api.post(f"/users/{user}/oauth/google", BODY | {"scope": 5}).text)

    assert len(texts) >= 10
    for token in (BODY["accessToken"], BODY["refreshToken"]):
        assert not [text for text in texts if token in text]
        assert token not in caplog.text


def test_tokens_are_sealed_in_the_database(api, new_user, stores):
    user = new_user()
    api.post(f"/users/{user}/oauth/google", BODY)

    with stores.database.reading() as session:
        (row,) = session.scalars(connections_of(user))
    assert b"planted" not in row.sealed_access_token + row.sealed_refresh_token
    assert "planted" not in json.dumps([row.id, row.email, row.scope])


# --- levels

# The permission to read the zone of a mailbox.
ZONE = "MailboxSettings.Read"


@pytest.mark.parametrize(
    ("provider", "posted", "stored"),
    [
        ("google", ["write"], [f"{GOOGLE}calendar"]),
        ("google", ["edit"], [f"{GOOGLE}calendar"]),
        ("google", ["read"], [f"{GOOGLE}calendar.readonly"]),
        ("google", ["free-busy"], [f"{GOOGLE}calendar.freebusy", f"{GOOGLE}calendar.calendarlist.readonly"]),
        ("microsoft", ["write"], ["Calendars.ReadWrite", ZONE]),
        ("microsoft", ["edit", "write", "openid"], ["Calendars.ReadWrite", ZONE, "openid"]),
        ("microsoft", ["read"], ["Calendars.Read", ZONE]),
        ("microsoft", ["free-busy"], ["Calendars.ReadBasic", ZONE]),
        ("microsoft", ["Write"], ["Write"]),
    ],
)
def test_a_level_stands_for_the_scopes_that_it_requests(api, new_user, provider, posted, stored):
    answer = api.post(f"/users/{new_user()}/oauth/{provider}", BODY | {"scope": posted})

    assert (answer.status_code, answer.json["data"]["scope"]) == (201, stored)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_a_connection_that_is_stored_with_a_level_works(api, sandbox, new_user, provider):
    user = new_user()
    connect(api, user, sandbox.account(provider, "ada@example.com"), scope=["write"])

    made = api.post(f"/users/{user}/calendar/events/{provider}/primary", WHEN)

    assert made.status_code == 201, made.json
    assert api.get(f"/users/{user}/calendar/busy", **RANGE).json["data"] != []


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("scope", [["write"], ["Calendars.Read", "MailboxSettings.ReadWrite"]])
def test_working_hours_of_an_imported_mailbox_count_in_its_zone(api, sandbox, new_user, scope):
    user = new_user()
    connect(api, user, sandbox.account("microsoft", "ada@example.com", time_zone="Asia/Tokyo"), scope=scope)
    days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    hours = [{"days": days, "start": "09:00", "end": "17:00"}]
    assert api.put(f"/users/{user}/availability", {"schedules": hours}).status_code == 200

    day = {"start": "2026-12-07", "end": "2026-12-09", "slotDuration": 60}
    answer = api.get(f"/users/{user}/scheduling", **day)

    assert answer.json["data"]["availableSlots"][0]["start"] == "2026-12-07T00:00:00.000Z"


# --- delete


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("path", ["/users/{}", "/users/{}/oauth/google"])
def test_deleting_revokes_at_google_and_forgets_tokens_and_cache(
    api, sandbox, new_user, stores, unique, path
):
    user = new_user(sandbox.account("google", f"{unique('ada')}@example.com"), obtained=True)
    assert api.get(f"/users/{user}/calendar/busy", **RANGE).status_code == 200
    with stores.database.reading() as session:
        ids = [row.id for row in session.scalars(connections_of(user))]
    assert cached(stores, ids)
    sandbox.forget_requests()

    assert api.delete(path.format(user)).status_code == 200

    assert sandbox.requests().by_operation == {"google.revoke": 1}
    assert not cached(stores, ids)
    with stores.database.reading() as session:
        assert session.scalars(connections_of(user)).all() == []
    assert api.delete(path.format(user)).status_code == 404
    assert api.get(f"/users/{user}/calendar/busy", **RANGE).status_code == 404


@pytest.mark.usefixtures("worker")
def test_microsoft_has_nothing_to_revoke_with(api, sandbox, new_user):
    user = new_user(sandbox.account("microsoft", "ada@contoso.example"))
    sandbox.forget_requests()

    assert api.delete(f"/users/{user}/oauth/microsoft").status_code == 200
    assert sandbox.requests().total == 0


@pytest.mark.usefixtures("worker")
def test_a_grant_that_cannot_be_revoked_is_forgotten_all_the_same(api, sandbox, new_user, unique):
    user = new_user(sandbox.account("google", f"{unique('ada')}@example.com"), obtained=True)
    sandbox.fault(provider="google", operation="google.revoke", status=500)

    assert api.delete(f"/users/{user}/oauth/google").status_code == 200
    assert api.get(f"/users/{user}/oauth").json["data"] == []


@pytest.mark.usefixtures("worker")
def test_replacing_a_connection_invalidates_its_cached_reads(api, sandbox, new_user, stores):
    busy = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
    first = sandbox.account("google", "ada@example.com", events=[busy])
    second = sandbox.account("google", "eve@example.com")
    user = new_user(first)
    assert len(api.get(f"/users/{user}/calendar/busy", **RANGE).json["data"]) == 1
    with stores.database.reading() as session:
        ids = [row.id for row in session.scalars(connections_of(user))]

    again = {"accessToken": second.access_token, "scope": second.scope.split(), "email": second.email}
    api.post(f"/users/{user}/oauth/google", again)

    assert not cached(stores, ids)
    assert api.get(f"/users/{user}/calendar/busy", **RANGE).json["data"] == []


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_only_the_channels_of_the_removed_connection_are_closed(
    api, sandbox, new_user, stores, monkeypatch, provider
):
    user = new_user(sandbox.account("google", "ada@example.com"), sandbox.account("microsoft", "a@b.example"))
    with stores.database.reading() as session:
        refs = connection_rows.of_user(session, user, organization_id=None)
    closed = []
    monkeypatch.setattr(disconnect, "stop_channels_of", closed.append)

    assert api.delete(f"/users/{user}/oauth/{provider}").status_code == 200

    assert closed == [[each.id for each in refs if each.provider == provider]]
