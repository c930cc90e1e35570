"""Scopes: what each level requests and each operation needs."""

from __future__ import annotations

import pytest

from providers import registry
from providers.errors import InsufficientScopes
from providers.scopes import Level, Operation, level, required_level

GOOGLE = "https://www.googleapis.com/auth/"
ORDER = [Level.FREE_BUSY, Level.READ, Level.WRITE]


@pytest.mark.parametrize("provider", registry.with_consent())
@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("granted", ORDER)
def test_a_level_allows_its_operations_and_those_below(provider, operation, granted):
    expected = ORDER.index(required_level(operation)) <= ORDER.index(granted)
    assert (
        registry.scopes(provider).allows(registry.scopes(provider).level_scopes(granted), operation)
        is expected
    )


@pytest.mark.parametrize("provider", registry.names())
def test_a_registration_that_allows_every_scope_allows_every_level(provider):
    scopes = registry.scopes(provider).every_scope()

    assert len(set(scopes)) == len(scopes)
    assert set(scopes) == {scope for each in ORDER for scope in registry.scopes(provider).level_scopes(each)}


def test_edit_is_the_old_name_of_write():
    assert level("edit") is Level.WRITE
    assert registry.scopes("google").level_scopes("edit") == registry.scopes("google").level_scopes("write")


@pytest.mark.parametrize("name", ["", "admin", "Write", "free_busy"])
def test_another_word_is_no_level(name):
    with pytest.raises(ValueError, match="not a valid"):
        level(name)


@pytest.mark.parametrize(
    ("provider", "granted"),
    [
        ("google", ["calendar.freebusy"]),
        ("google", [f"{GOOGLE}calendar.freebusy"]),
        ("google", [f"{GOOGLE}Calendar.FreeBusy".upper()]),
        ("microsoft", ["Calendars.ReadBasic"]),
        ("microsoft", ["calendars.readwrite"]),
        ("microsoft", ["https://graph.microsoft.com/Calendars.Read", "openid"]),
        ("microsoft", ["Calendars.Read.Shared"]),
        ("microsoft", ["https://graph.microsoft.com//Calendars.Read"]),
        ("google", [f"{GOOGLE}calendar/"]),
    ],
)
def test_scopes_count_short_or_as_urls_in_any_case(provider, granted):
    assert registry.scopes(provider).allows(granted, "calendar.freebusy.query")


@pytest.mark.parametrize(
    ("granted", "operation"),
    [
        ("calendar.events", Operation.FREE_BUSY),
        ("calendar.events", Operation.LIST_CALENDARS),
        ("calendar.freebusy", Operation.LIST_CALENDARS),
        ("calendar.readonly", Operation.INSERT_EVENT),
    ],
)
def test_googles_traps(granted, operation):
    """https://developers.google.com/workspace/calendar/api/v3/reference: each method lists its scopes."""
    assert not registry.scopes("google").allows([GOOGLE + granted], operation)


def test_no_scopes_allow_nothing():
    assert not any(
        registry.scopes(provider).allows((), each) for provider in registry.names() for each in Operation
    )


@pytest.mark.parametrize("provider", registry.with_consent())
@pytest.mark.parametrize("operation", Operation)
def test_the_error_names_operation_level_and_scopes_to_request(provider, operation):
    error = registry.scopes(provider).insufficient(operation)
    needed = required_level(operation)
    assert error.operation == operation
    for part in (operation, needed, *registry.scopes(provider).level_scopes(needed)):
        assert part in error.message


def test_any_one_valid_scope_is_enough():
    for provider in registry.names():
        for operation in Operation:
            assert all(
                registry.scopes(provider).allows([each], operation)
                for each in registry.scopes(provider).valid_scopes(operation)
            )


def test_require_raises_what_is_missing():
    registry.scopes("google").require(["calendar"], "calendar.events.delete")
    with pytest.raises(InsufficientScopes):
        registry.scopes("google").require(["calendar.readonly"], "calendar.events.delete")


def test_one_scope_is_found_however_it_is_written():
    granted = ["https://graph.microsoft.com/mailboxsettings.read"]
    assert registry.scopes("microsoft").has_scope(granted, "MailboxSettings.Read")
    assert not registry.scopes("microsoft").has_scope(["Calendars.Read"], "MailboxSettings.Read")
