"""The directories of both providers, read from scripted answers over a socket."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from providers.directory import Entry
from providers.errors import (
    AccessDenied,
    InsufficientScopes,
    ProviderError,
    ProviderNotConfigured,
    Unreadable,
)
from providers.google.directory import GoogleDirectory
from providers.http.calls import Bearer
from providers.microsoft.directory import MicrosoftDirectory

USERS = "admin#directory#users"


@pytest.fixture
def listed(script, scripted_account, soon):
    def read(part, kind="user"):
        return list(part(script.url).entries(kind, Bearer.of(scripted_account), deadline=soon(5)))

    return read


def google_error(reason, status=403):
    return {"error": {"code": status, "message": "-", "errors": [{"domain": "global", "reason": reason}]}}


def test_google_is_asked_for_the_whole_account_page_by_page(script, listed):
    script.say(body={"kind": USERS, "nextPageToken": "two"})
    ada = {"id": "1", "primaryEmail": "ada@acme.example", "name": {"fullName": "Ada"}}
    script.say(body={"kind": USERS, "users": [ada, {"id": "2", "primaryEmail": "", "name": None}]})

    assert listed(GoogleDirectory) == [Entry("user", "1", "ada@acme.example", "Ada")]

    first, second = (parse_qs(urlsplit(each["path"]).query) for each in script.requests)
    assert (first["customer"], first["maxResults"], first["orderBy"]) == (["my_customer"], ["500"], ["email"])
    assert second == first | {"pageToken": ["two"]}
    assert script.requests[0]["headers"]["Authorization"] == "Bearer secret-access"


@pytest.mark.parametrize(
    ("person", "shown"),
    [
        ({"suspended": True}, False),
        ({"archived": True}, False),
        ({"suspended": False, "archived": False}, True),
        ({}, True),
    ],
)
def test_google_people_who_are_suspended_or_archived_are_left_out(script, listed, person, shown):
    script.say(body={"kind": USERS, "users": [{"id": "1", "primaryEmail": "a@acme.example", **person}]})
    assert bool(listed(GoogleDirectory)) is shown


@pytest.mark.parametrize(
    ("person", "address"),
    [
        ({"mail": "ada@acme.example", "userPrincipalName": "a@acme.example"}, "ada@acme.example"),
        ({"mail": None, "userPrincipalName": "a@acme.example"}, "a@acme.example"),
        ({"mail": "ada@acme.example", "accountEnabled": False}, None),
        ({"mail": "ada@acme.example", "accountEnabled": None}, "ada@acme.example"),
        ({"mail": "ada@acme.example", "userType": "Guest"}, None),
        ({"mail": "ada@acme.example", "userType": None}, "ada@acme.example"),
        ({"mail": None}, None),
    ],
)
def test_microsoft_people_who_are_disabled_or_guests_are_left_out(script, listed, person, address):
    script.say(body={"value": [{"id": "1", "displayName": "Ada", **person}]})
    assert [each.email for each in listed(MicrosoftDirectory)] == ([address] if address else [])


def test_what_a_room_lacks_is_absent(script, listed):
    script.say(body={"value": [{"id": "1", "emailAddress": "r@acme.example", "capacity": 0, "building": ""}]})
    assert listed(MicrosoftDirectory, "room") == [Entry("room", "1", "r@acme.example", "")]


def test_a_page_link_to_another_host_gets_no_token(script, listed):
    script.say(body={"value": [], "@odata.nextLink": "https://elsewhere.example/users?$skiptoken=1"})
    with pytest.raises(ProviderError, match="leads elsewhere"):
        listed(MicrosoftDirectory)
    assert len(script.requests) == 1


def test_pages_that_do_not_end_are_a_failure(script, listed):
    script.say(body={"value": [], "@odata.nextLink": f"{script.url}/users?$skiptoken=1"})
    with pytest.raises(ProviderError, match="do not end"):
        listed(MicrosoftDirectory)
    script.answers.clear()
    script.say(body={"kind": USERS, "nextPageToken": "again"})
    with pytest.raises(ProviderError, match="do not end"):
        listed(GoogleDirectory)


@pytest.mark.parametrize(
    ("part", "body"),
    [
        (GoogleDirectory, {}),
        (GoogleDirectory, {"kind": USERS, "users": {}}),
        (GoogleDirectory, {"kind": USERS, "users": ["ada"]}),
        (GoogleDirectory, {"kind": USERS, "nextPageToken": 2}),
        (MicrosoftDirectory, {}),
        (MicrosoftDirectory, {"value": {}}),
        (MicrosoftDirectory, {"value": ["ada"]}),
    ],
)
def test_an_unreadable_answer_is_no_empty_directory(script, listed, part, body):
    script.say(body=body)
    with pytest.raises(Unreadable):
        listed(part)


@pytest.mark.parametrize(
    ("reason", "kind", "sentence"),
    [
        ("insufficientPermissions", InsufficientScopes, "admin.directory.user.readonly"),
        ("forbidden", AccessDenied, "an administrator of the domain"),
        ("accessNotConfigured", ProviderNotConfigured, "Admin SDK API is not enabled"),
    ],
)
def test_google_says_what_the_administrator_does(script, listed, reason, kind, sentence):
    script.say(403, google_error(reason))
    with pytest.raises(kind) as caught:
        listed(GoogleDirectory)
    assert sentence in caught.value.message
    assert "secret" not in f"{caught.value!r}{caught.value.message}"


@pytest.mark.parametrize("code", ["Authorization_RequestDenied", "ErrorAccessDenied", "Forbidden"])
def test_microsoft_says_which_permission_is_missing(script, listed, code):
    script.say(403, {"error": {"code": code, "message": "-"}})
    with pytest.raises(InsufficientScopes, match=r"Place\.Read\.All and grants admin consent"):
        listed(MicrosoftDirectory, "room")
