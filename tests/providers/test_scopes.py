"""Scopes: what each level requests and each operation needs."""

from __future__ import annotations

import pytest

from providers import registry
from providers.errors import InsufficientScopes
from providers.scopes import (
    Level,
    Operation,
    allows,
    every_scope,
    has_scope,
    insufficient,
    level,
    level_scopes,
    require,
    required_level,
    valid_scopes,
)

GOOGLE = "https://www.googleapis.com/auth/"
ORDER = [Level.FREE_BUSY, Level.READ, Level.WRITE]


@pytest.mark.parametrize("provider", str)
@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("granted", ORDER)
def test_a_level_allows_its_operations_and_those_below(provider, operation, granted):
    expected = ORDER.index(required_level(operation)) <= ORDER.index(granted)
    assert allows(provider, level_scopes(provider, granted), operation) is expected


@pytest.mark.parametrize("provider", str)
def test_a_registration_that_allows_every_scope_allows_every_level(provider):
    scopes = every_scope(provider)

    assert len(set(scopes)) == len(scopes)
    assert set(scopes) == {scope for each in ORDER for scope in level_scopes(provider, each)}


def test_edit_is_the_old_name_of_write():
    assert level("edit") is Level.WRITE
    assert level_scopes("google", "edit") == level_scopes("google", "write")


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
    assert allows(provider, granted, "calendar.freebusy.query")


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
    assert not allows("google", [GOOGLE + granted], operation)


def test_no_scopes_allow_nothing():
    assert not any(allows(provider, (), each) for provider in registry.names() for each in Operation)


@pytest.mark.parametrize("provider", str)
@pytest.mark.parametrize("operation", Operation)
def test_the_error_names_operation_level_and_scopes_to_request(provider, operation):
    error = insufficient(provider, operation)
    needed = required_level(operation)
    assert error.operation == operation
    for part in (operation, needed, *level_scopes(provider, needed)):
        assert part in error.message


def test_any_one_valid_scope_is_enough():
    for provider in registry.names():
        for operation in Operation:
            assert all(allows(provider, [each], operation) for each in valid_scopes(provider, operation))


def test_require_raises_what_is_missing():
    require("google", ["calendar"], "calendar.events.delete")
    with pytest.raises(InsufficientScopes):
        require("google", ["calendar.readonly"], "calendar.events.delete")


def test_one_scope_is_found_however_it_is_written():
    granted = ["https://graph.microsoft.com/mailboxsettings.read"]
    assert has_scope("microsoft", granted, "MailboxSettings.Read")
    assert not has_scope("microsoft", ["Calendars.Read"], "MailboxSettings.Read")
