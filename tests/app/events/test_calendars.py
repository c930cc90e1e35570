"""A user's calendars, over all accounts."""

from __future__ import annotations

import pytest

from tests.app.answers import OF_ERROR, OF_PROVIDER, error
from tests.app.days import PROVIDERS
from tests.conftest import connect

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
ADA = {"google": "ada@example.com", "microsoft": "ada@contoso.example"}
LIST = {"google": "google.calendarList.list", "microsoft": "microsoft.batch"}


@pytest.fixture
def user_with_two_accounts(sandbox, new_user):
    """A user with a mailbox in Berlin beside a Google account in Tokyo."""
    google = sandbox.account(
        "google",
        ADA["google"],
        time_zone="Asia/Tokyo",
        calendars=[{"primary": True}, {"id": "team@group.calendar.google.com", "subject": "Team"}],
    )
    microsoft = sandbox.account(
        "microsoft", ADA["microsoft"], time_zone="Europe/Berlin", calendars=[{"id": "AAMk1", "primary": True}]
    )
    return new_user(google, microsoft)


def calendars(api, user, **query):
    answer = api.get(f"/users/{user}/calendar", **query)
    assert answer.status_code == 200, answer.text
    return answer.json["data"]


def without_record(calendar):
    return {name: value for name, value in calendar.items() if name != "original"}


@pytest.mark.slow
def test_every_field_of_googles_calendars(api, user_with_two_accounts):
    main, team = calendars(api, user_with_two_accounts, provider="google")
    assert without_record(main) == {
        "id": ADA["google"],
        "provider": "google",
        "connectionId": main["connectionId"],
        "subject": ADA["google"],
        "accessRole": "owner",
        "primary": True,
        "selected": True,
        "backgroundColor": "#9fe1e7",
        "foregroundColor": "#000000",
        "timeZone": "Asia/Tokyo",
    }
    assert (team["subject"], team["primary"], team["backgroundColor"]) == ("Team", False, "#42d692")
    assert (main["original"]["kind"], main["original"]["colorId"]) == ("calendar#calendarListEntry", "14")


def test_every_field_of_microsofts_calendars(api, user_with_two_accounts):
    (main,) = calendars(api, user_with_two_accounts, provider="microsoft")
    assert without_record(main) == {
        "id": "AAMk1",
        "provider": "microsoft",
        "connectionId": main["connectionId"],
        "subject": "Calendar",
        "accessRole": "owner",
        "primary": True,
        "selected": True,
        "backgroundColor": "#0078d4",
        "foregroundColor": "#000000",
        "timeZone": "Europe/Berlin",
    }
    assert (main["original"]["color"], main["original"]["isDefaultCalendar"]) == ("auto", True)


def test_all_accounts_are_listed_googles_first_and_nothing_failed(api, user_with_two_accounts):
    answer = api.get(f"/users/{user_with_two_accounts}/calendar")
    assert answer.json.keys() == {"data", "failedCalendars"}
    assert answer.json["failedCalendars"] == []
    assert [each["id"] for each in answer.json["data"]] == [
        ADA["google"],
        "team@group.calendar.google.com",
        "AAMk1",
    ]


@pytest.mark.parametrize("written", ["provider=microsoft", "provider[]=microsoft", "provider=,microsoft"])
def test_a_provider_filter_leaves_the_other_account_alone(api, sandbox, user_with_two_accounts, written):
    answer = api.call("GET", f"/users/{user_with_two_accounts}/calendar", query_string=written)
    assert [each["provider"] for each in answer.json["data"]] == ["microsoft"]
    assert LIST["google"] not in sandbox.requests().by_operation


@BOTH
def test_a_role_is_what_the_account_may_do(api, sandbox, new_user, provider):
    roles = ["owner", "writer", "writerWithoutPrivateAccess", "reader", "freeBusyReader"]
    listed = [{"primary": True}, *({"id": f"AAMk-{role}", "accessRole": role} for role in roles[1:])]
    user = new_user(sandbox.account(provider, ADA[provider], calendars=listed))
    # Graph has no free/busy role: without the right to edit, the role is reader.
    least = {"google": "freeBusyReader", "microsoft": "reader"}[provider]
    found = [each["accessRole"] for each in calendars(api, user)]
    assert found == ["owner", "writer", "writer", "reader", least]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Pacific Standard Time", "America/Los_Angeles"),
        ("Asia/Kathmandu", "Asia/Katmandu"),
        ("Europe/Berlin", "Europe/Berlin"),
    ],
)
def test_a_mailboxs_zone_has_its_iana_name(api, sandbox, new_user, zone, expected):
    user = new_user(sandbox.account("microsoft", ADA["microsoft"], time_zone=zone))
    assert [each["timeZone"] for each in calendars(api, user)] == [expected]


def test_mailbox_without_readable_zone_is_in_utc(api, sandbox, new_user):
    narrow = sandbox.account(
        "microsoft", ADA["microsoft"], time_zone="Europe/Berlin", scope="Calendars.ReadBasic"
    )
    user = new_user(narrow)
    assert [each["timeZone"] for each in calendars(api, user)] == ["UTC"]
    assert "microsoft.mailboxSettings.get" not in sandbox.requests().by_operation


def test_an_unreadable_zone_is_utc(api, sandbox, new_user):
    user = new_user(sandbox.account("microsoft", ADA["microsoft"], time_zone="Europe/Berlin"))
    sandbox.fault(operation="microsoft.mailboxSettings.get", status=403)
    assert [each["timeZone"] for each in calendars(api, user)] == ["UTC"]


@BOTH
def test_every_page_of_a_long_list_is_followed(api, sandbox, new_user, provider):
    listed = [{"primary": True}, *({"id": f"AAMk{number}"} for number in range(260))]
    user = new_user(sandbox.account(provider, ADA[provider], calendars=listed))
    assert len({each["id"] for each in calendars(api, user)}) == 261


@BOTH
def test_the_least_scope_level_lists_calendars(api, sandbox, new_user, provider):
    scope = {"google": "calendar.freebusy calendar.calendarlist.readonly", "microsoft": "Calendars.ReadBasic"}
    user = new_user(sandbox.account(provider, ADA[provider], scope=scope[provider]))
    assert len(calendars(api, user)) == 1


# --- failures


@BOTH
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"status": 503, "retry_after": 60}, "providerError"),
        ({"status": 403}, "accessDenied"),
        ({"status": 429, "retry_after": 60}, "rateLimited"),
        ({"body": "html"}, "providerError"),
    ],
    ids=str,
)
def test_an_account_that_fails_is_named_and_the_other_is_listed(
    api, sandbox, user_with_two_accounts, provider, fault, reason
):
    # Every call: of a batch that is HTML, the parts are read one by one.
    sandbox.fault(provider=provider, **fault)
    answer = api.get(f"/users/{user_with_two_accounts}/calendar")
    assert answer.status_code == 200
    assert provider not in {each["provider"] for each in answer.json["data"]}
    assert answer.json["data"]
    (failed,) = answer.json["failedCalendars"]
    main = {"google": ADA["google"], "microsoft": "AAMk1"}[provider]
    assert failed | {"message": ""} == {
        "calendarId": main,
        "provider": provider,
        "connectionId": failed["connectionId"],
        "reason": reason,
        "code": reason,
        "message": "",
    }
    assert failed["message"]


@BOTH
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ({"status": 403}, 403),
        ({"status": 503, "retry_after": 60}, 502),
        ({"status": 429, "retry_after": 60}, 429),
    ],
    ids=str,
)
def test_when_nothing_could_be_listed_the_request_fails(api, sandbox, new_user, provider, fault, status):
    user = new_user(sandbox.account(provider, ADA[provider]))
    sandbox.fault(operation=LIST[provider], **fault)
    answer = api.get(f"/users/{user}/calendar")
    assert answer.status_code == status
    assert answer.json["data"] is None
    assert answer.json.get("retryAfter") == (60 if status == 429 else None)
    assert answer.headers.get("Retry-After") == ("60" if status == 429 else None)


def test_more_specific_of_two_failures_is_reported(api, sandbox, user_with_two_accounts):
    sandbox.fault(operation=LIST["google"], status=503, retry_after=60)
    sandbox.revoke(ADA["microsoft"])
    expected = error(api.get(f"/users/{user_with_two_accounts}/calendar"), 401)
    assert "Microsoft" in expected


@BOTH
def test_a_revoked_grant_is_401_and_not_used_again(api, sandbox, new_user, provider):
    user = new_user(sandbox.account(provider, ADA[provider]))
    sandbox.revoke(ADA[provider])
    error(api.get(f"/users/{user}/calendar"), 401)
    assert api.get(f"/users/{user}/oauth/{provider}").json["data"]["alive"] is False
    sandbox.forget_requests()
    error(api.get(f"/users/{user}/calendar"), 401)
    assert sandbox.requests().total == 0


@BOTH
def test_a_grant_too_narrow_is_refused_before_the_provider_call(api, sandbox, new_user, provider):
    user = new_user()
    connect(api, user, sandbox.account(provider, ADA[provider]), scope=["openid"])
    answer = api.get(f"/users/{user}/calendar")
    assert answer.status_code == 403
    assert answer.json.keys() == OF_ERROR | OF_PROVIDER | {"operation", "validScopes"}
    assert answer.json["operation"] == "calendar.calendarList.list"
    assert "free-busy" in answer.json["error"]
    assert answer.json["validScopes"]
    assert sandbox.requests().total == 0


# --- access


def test_calendars_can_be_read_by_pages(api, user_with_two_accounts):
    first = api.get(f"/users/{user_with_two_accounts}/calendar", limit=2).json
    rest = api.get(f"/users/{user_with_two_accounts}/calendar", limit=2, cursor=first["nextCursor"]).json
    assert [*first["data"], *rest["data"]] == calendars(api, user_with_two_accounts)
    assert (len(first["data"]), len(rest["data"]), rest["nextCursor"]) == (2, 1, None)
