"""The directory of an organization over HTTP, read by a real worker at the sandbox."""

from __future__ import annotations

import pytest

from tests.people import grant_of

pytestmark = pytest.mark.usefixtures("worker")

PEOPLE = "https://www.googleapis.com/auth/admin.directory.user.readonly"
ROOMS = "https://www.googleapis.com/auth/admin.directory.resource.calendar.readonly"
CALENDARS = "https://www.googleapis.com/auth/calendar"
GOOGLE = ["openid", "email", CALENDARS, PEOPLE, ROOMS]
MICROSOFT = ["Calendars.Read", "MailboxSettings.Read", "User.Read.All", "Place.Read.All"]
MEMBERS = [
    "ada.lovelace@acme.example",
    "Grace@acme.example",
    {"email": "gone@acme.example", "suspended": True},
]


@pytest.fixture
def slug(new_organization) -> str:
    return new_organization()


@pytest.fixture
def google(api, slug, sandbox):
    rooms = [
        {"email": "c_1@resource.calendar.google.com", "name": "Aurora", "building": "HQ", "capacity": 8},
        {"email": "c_2@resource.calendar.google.com", "name": "The van", "category": "OTHER"},
        {"email": "c_3@resource.calendar.google.com", "name": "Boreas"},
    ]
    return granted(api, slug, sandbox.domain("google", "acme.example", MEMBERS, rooms=rooms, scope=GOOGLE))


@pytest.fixture
def microsoft(api, slug, sandbox):
    members = [*MEMBERS, {"email": "visitor@acme.example", "guest": True}]
    rooms = [
        {"email": "aurora@acme.example", "name": "Aurora", "building": "HQ", "capacity": 8},
        {"email": "boreas@acme.example", "name": "Boreas"},
    ]
    return granted(
        api, slug, sandbox.domain("microsoft", "acme.example", members, rooms=rooms, scope=MICROSOFT)
    )


@pytest.fixture(params=["google", "microsoft"])
def provider(request) -> str:
    """Either provider, with a grant that may list everything."""
    request.getfixturevalue(request.param)
    return request.param


def granted(api, slug, domain):
    assert api.put(f"/organizations/{slug}/grants/{domain.provider}", grant_of(domain)).status_code == 200
    return domain


def listed(api, slug, provider, **query):
    return api.get(f"/organizations/{slug}/grants/{provider}/directory", **query)


def names(answer):
    assert answer.status_code == 200, answer.text
    return [(each["kind"], each["name"]) for each in answer.json["data"]]


def test_people_and_rooms_are_listed_without_suspended_accounts_guests_and_cars(api, slug, provider):
    answer = listed(api, slug, provider)
    assert sorted(names(answer)) == [
        ("room", "Aurora"),
        ("room", "Boreas"),
        ("user", "Ada Lovelace"),
        ("user", "Grace"),
    ]
    addresses = [each["email"].lower() for each in answer.json["data"]]
    assert addresses == sorted(addresses)
    assert "more" not in answer.json
    assert answer.headers["Cache-Control"] == "no-store"


def test_rooms_have_what_the_provider_knows_of_them(api, slug, provider):
    aurora, boreas = listed(api, slug, provider, kind="room").json["data"]
    assert (aurora["building"], aurora["capacity"]) == ("HQ", 8)
    assert set(boreas) == {"kind", "id", "email", "name"}


def test_q_is_a_part_of_name_or_address_in_any_case(api, slug, provider):
    assert names(listed(api, slug, provider, q="LOVE")) == [("user", "Ada Lovelace")]
    assert names(listed(api, slug, provider, q="grace@ACME")) == [("user", "Grace")]
    assert names(listed(api, slug, provider, q="auro", kind="user")) == []


def test_the_member_whom_the_grant_reads_is_named(api, slug, provider):
    members = [{"userId": f"{slug}-ada", "email": "ADA.lovelace@acme.example"}]
    api.post(f"/organizations/{slug}/grants/{provider}/members", {"members": members})
    ada, grace = listed(api, slug, provider, kind="user").json["data"]
    assert (ada["userId"], "userId" in grace) == (f"{slug}-ada", False)


@pytest.mark.parametrize("of", ["google", "microsoft"])
def test_every_page_is_read(api, slug, sandbox, of):
    people = [f"p{number:04}@many.example" for number in range(1100)]
    scope = GOOGLE if of == "google" else MICROSOFT
    granted(api, slug, sandbox.domain(of, "many.example", people, scope=scope))
    sandbox.forget_requests()
    answer = listed(api, slug, of, kind="user")
    assert [each["email"] for each in answer.json["data"]] == people
    assert sandbox.requests().by_operation[OPERATIONS[of]] > 1


@pytest.mark.parametrize(("kind", "missing"), [("user", PEOPLE), ("room", ROOMS)])
def test_a_missing_scope_is_named_and_the_grant_stays_alive(api, slug, sandbox, google, kind, missing):
    sandbox.change_domain("acme.example", scope=[each for each in GOOGLE if each != missing])
    for query in ({"kind": kind}, {}):
        answer = listed(api, slug, "google", **query)
        assert (answer.status_code, answer.json["code"]) == (403, "insufficientScopes")
        assert missing in answer.json["error"]
    other = "room" if kind == "user" else "user"
    assert listed(api, slug, "google", kind=other).status_code == 200
    assert api.get(f"/organizations/{slug}/grants/google").json["data"]["alive"] is True

    sandbox.change_domain("acme.example", scope=GOOGLE)
    assert listed(api, slug, "google").status_code == 200


@pytest.mark.parametrize(("kind", "missing"), [("user", "User.Read.All"), ("room", "Place.Read.All")])
def test_a_missing_permission_is_named_and_counts_once_it_is_added(
    api, slug, sandbox, microsoft, kind, missing
):
    sandbox.change_domain("acme.example", scope=[each for each in MICROSOFT if each != missing])
    answer = listed(api, slug, "microsoft", kind=kind)
    assert (answer.status_code, answer.json["code"]) == (403, "insufficientScopes")
    assert missing in answer.json["error"]

    sandbox.change_domain("acme.example", scope=MICROSOFT)
    assert listed(api, slug, "microsoft", kind=kind).status_code == 200


def test_a_subject_who_is_no_administrator_is_told_so(api, slug, sandbox, google):
    sandbox.change_domain("acme.example", members=[{"email": google.subject, "administrator": False}])
    answer = listed(api, slug, "google")
    assert (answer.status_code, answer.json["code"]) == (403, "accessDenied")
    assert "an administrator of the domain" in answer.json["error"]


def test_a_withdrawn_grant_lists_nothing(api, slug, sandbox, provider):
    sandbox.withdraw("acme.example")
    answer = listed(api, slug, provider)
    assert answer.status_code in (401, 403)
    assert answer.json["data"] is None


OPERATIONS = {"google": "google.users.list", "microsoft": "microsoft.users.list"}


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ({"status": 503, "retry_after": 60}, 502, "providerError"),
        ({"status": 429, "retry_after": 60}, 429, "rateLimited"),
        ({"body": "html"}, 502, "providerError"),
        ({"body": "truncated"}, 502, "providerError"),
    ],
)
def test_a_failure_is_named_and_never_an_empty_list(api, slug, sandbox, provider, fault, status, code):
    sandbox.fault(operation=OPERATIONS[provider], **fault)
    answer = listed(api, slug, provider)
    assert (answer.status_code, answer.json["code"]) == (status, code)
    assert answer.json["data"] is None
    assert "operation" not in answer.json
    assert "calendar" not in answer.json["error"].lower()


def test_nothing_is_kept_from_one_request_to_the_next(api, slug, sandbox, provider):
    listed(api, slug, provider)
    sandbox.change_domain("acme.example", members=[{"email": "Grace@acme.example", "suspended": True}])
    assert names(listed(api, slug, provider, kind="user")) == [("user", "Ada Lovelace")]
