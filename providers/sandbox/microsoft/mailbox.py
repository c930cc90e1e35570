"""The user, the mailbox's settings and the calendars.

https://learn.microsoft.com/graph/api/user-list-calendars
"""

from __future__ import annotations

import uuid
from typing import Any

from providers.sandbox.accounts import Account
from providers.sandbox.calendars import Calendar
from providers.sandbox.calls import Call
from providers.sandbox.exchange import Answer
from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.microsoft.pages import chosen, collection, entity, page, selected
from providers.sandbox.microsoft.resources import calendar_resource
from scheduling.zones import windows_zone

WORKING_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday"]


def get_me(call: Call) -> Answer:
    """``GET /me``"""
    email = call.account.email
    name = email.partition("@")[0]
    document: dict[str, Any] = {
        "businessPhones": [],
        "displayName": name,
        "givenName": name,
        "jobTitle": None,
        "mail": email,
        "mobilePhone": None,
        "officeLocation": None,
        "preferredLanguage": "en-US",
        "surname": "",
        "userPrincipalName": email,
        "id": object_id(call.account),
    }
    return entity(call.request, "users/$entity", document)


def object_id(account: Account) -> str:
    """The directory's stable id of a user."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"mailto:{account.email.lower()}"))


def seen(call: Call, calendar_id: str = "") -> Calendar:
    """The calendar with an id, or the default one; an account without calendars has no mailbox."""
    main = call.account.primary
    if main is None:
        raise refusal("MailboxNotEnabledForRESTAPI")
    if not calendar_id:
        return main
    calendar = call.account.calendars.get(calendar_id)
    if calendar is None:
        # Valid ids have this prefix; any other text is a malformed id.
        raise refusal("ErrorItemNotFound" if calendar_id.startswith("AAMk") else "ErrorInvalidIdMalformed")
    return calendar


def list_calendars(call: Call) -> Answer:
    """``GET /me/calendars``"""
    seen(call)
    calendars, link = page(call.request, list(call.account.calendars.values()))
    names = chosen(call.request)
    items = [selected(calendar_resource(call.account, calendar), names) for calendar in calendars]
    return collection(call.request, "me/calendars", items, link)


def get_calendar(call: Call, calendar_id: str = "") -> Answer:
    """``GET /me/calendar`` and ``GET /me/calendars/{id}``"""
    return entity(
        call.request, "me/calendars/$entity", calendar_resource(call.account, seen(call, calendar_id))
    )


def working_hours(account: Account) -> dict[str, Any]:
    return {
        "daysOfWeek": WORKING_DAYS,
        "startTime": "08:00:00.0000000",
        "endTime": "17:00:00.0000000",
        "timeZone": {"name": zone_name(account)},
    }


def zone_name(account: Account) -> str:
    """The mailbox's zone, by its Windows name where it has one."""
    return windows_zone(account.time_zone) or account.time_zone


def get_settings(call: Call) -> Answer:
    """``GET /me/mailboxSettings``"""
    seen(call)
    document = {
        "timeZone": zone_name(call.account),
        "language": {"locale": "en-US", "displayName": "English (United States)"},
        "workingHours": working_hours(call.account),
        "dateFormat": "MM/dd/yyyy",
        "timeFormat": "hh:mm tt",
    }
    return entity(call.request, "Me/mailboxSettings", document)


def get_time_zone(call: Call) -> Answer:
    """``GET /me/mailboxSettings/timeZone``"""
    seen(call)
    return entity(call.request, "Me/mailboxSettings/timeZone", {"value": zone_name(call.account)})
