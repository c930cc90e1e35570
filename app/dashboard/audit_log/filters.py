"""The filters of the audit log, as they stand in the address of the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from flask import request, url_for

from app.dashboard.pagination import MAX_SEARCH
from app.schemas.fields import CONTROL
from store.sql.queries.audit import AuditFilter

# The arguments in addresses, in the order of the form.
TEXTS = ("q", "person", "action", "target")
DAYS = ("since", "until")

# Suggested for the filter by action; a part of any other is found as well.
SUGGESTED_ACTIONS = (
    *("signIn", "signInFailed", "secondFactorFailed", "inviteAdministrator", "createAdministrator"),
    *("changeRole", "removeAdministrator", "endSession", "changePassword", "enableSecondFactor"),
    *("disableSecondFactor", "resetSecondFactor", "createKey", "revokeKey", "createUser", "renameUser"),
    *("deleteUser", "connect", "deleteConnection", "makeLink", "createOrganization", "changeOrganization"),
    *("deleteOrganization", "addMembers", "removeMember", "importMembers", "storeGrant", "deleteGrant"),
    *("createWebhook", "changeWebhook", "rotateWebhookSecret", "deleteWebhook", "replayDelivery"),
    *("saveRegistration", "removeRegistration", "createHold", "deleteHold"),
)


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a request: ``values`` as they were written, ``errors`` by argument, and the query."""

    values: Mapping[str, str]
    errors: Mapping[str, str]
    query: AuditFilter

    @property
    def narrow(self) -> bool:
        """Whether any filter is set."""
        return any(self.values.values())

    @property
    def detailed(self) -> bool:
        """Whether a filter beside the search is set."""
        return any(value for name, value in self.values.items() if name != "q")

    def address(self, endpoint: str, **more: object) -> str:
        """The address of a route with these filters."""
        set_ones = {name: value for name, value in self.values.items() if value}
        return url_for(f"dashboard.{endpoint}", **set_ones, **more)  # type: ignore[arg-type]


def read() -> Filters:
    """The filters of this request. A day that is none is an error, and excludes nothing."""
    values = {name: _text(name) for name in (*TEXTS, *DAYS)}
    errors: dict[str, str] = {}
    days = {name: _day(values[name], name, errors) for name in DAYS}
    until = days["until"]
    query = AuditFilter(
        text=values["q"],
        actor=values["person"],
        action=values["action"],
        subject=values["target"],
        since=_midnight(days["since"]),
        # Inclusive on the page.
        before=None if until is None else _midnight(until + timedelta(days=1)),
    )
    return Filters(values, errors, query)


def _text(name: str) -> str:
    return CONTROL.sub("", request.args.get(name, "")).strip()[:MAX_SEARCH]


def _day(text: str, name: str, errors: dict[str, str]) -> date | None:
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    # The day after the last one, which bounds a range, has to exist.
    if day is None or day.year > 9000:
        errors[name] = "must be a date, like 2027-01-31"
        return None
    return day


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time(), UTC)
