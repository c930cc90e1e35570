"""The audit log: who did what, and when; its filters, its links to what a record is about, and its export."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from flask import Response, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.dashboard.blueprint import blp, page
from app.dashboard.pagination import MAX_SEARCH, ResultPage, number_before
from app.dashboard.sign_in import roles
from app.schemas.fields import CONTROL, SLUG, USER_ID, WEBHOOK_ID
from app.services import services
from store.sql.models import AuditRecord, now
from store.sql.queries import administrators, audit, organizations, users, webhooks
from store.sql.queries.audit import AuditFilter
from store.stores import Stores


@blp.get("/audit")
def audit_log() -> ResponseReturnValue:
    """The records that match the filters, the newest first."""
    filtered, before = read_filters(), number_before()
    with services().stores.database.reading() as session:
        rows = audit.page(session, filtered.query, before=before, limit=ResultPage.FETCHED)
        found = ResultPage.of(rows)
        links = links_of(session, found.rows)
        people = [each.name for each in administrators.every(session)]
    return page(
        "audit_log.html",
        400 if filtered.errors else 200,
        found=found,
        filters=filtered,
        before=before,
        links=links,
        people=people,
        actions=SUGGESTED_ACTIONS,
    )


@blp.get("/audit/export")
def export_audit_log() -> ResponseReturnValue:
    """The records that match the filters, as CSV."""
    filtered = read_filters()
    if filtered.errors:
        return page("error.html", 400, title="This day is none", hint="Go back and correct it.", code=400)
    response = Response(csv_lines(filtered.query, services().stores), mimetype="text/csv")
    name = f"audit-log-{now():%Y-%m-%d}.csv"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


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


def read_filters() -> Filters:
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


_USERS = frozenset({"createUser", "connect", "makeLink", "deleteConnection", "showToken", "createHold"})
_ORGANIZATIONS = frozenset({"createOrganization", "changeOrganization", "addMembers", "removeMember"})
_GRANTS = frozenset({"storeGrant", "importMembers"})
_WEBHOOKS = frozenset(
    {"createWebhook", "changeWebhook", "rotateWebhookSecret", "testWebhook", "replayDelivery"}
)
_PEOPLE = frozenset(
    {
        *("createAdministrator", "changeRole", "changePassword", "endSession", "enableSecondFactor"),
        *("disableSecondFactor", "resetSecondFactor", "createRecoveryCodes"),
    }
)
# Pages that show all of a kind.
_LISTS = {
    **dict.fromkeys(("createKey", "revokeKey"), "keys"),
    **dict.fromkeys(("saveRegistration", "removeRegistration"), "settings"),
}


class Target(NamedTuple):
    """The target of a link: its kind, and its identifier."""

    kind: str
    identifier: str


def links_of(session: Session, records: Sequence[AuditRecord]) -> Mapping[int, str]:
    """The address for each record that has one, by the record's id; in a fixed number of statements."""
    targets = {each.id: target for each in records if (target := target_of(each.action, each.subject))}
    there = {
        "user": set(users.ids(session, _of(targets.values(), "user"), organization_id=None)),
        "organization": set(
            organizations.ids(session, _of(targets.values(), "organization"), organization_id=None)
        ),
        "webhook": webhooks.existing(session, _of(targets.values(), "webhook")),
    }
    may_see_people = roles.may("administrator")
    people = administrators.ids(session, _of(targets.values(), "person")) if may_see_people else {}
    found = {}
    for number, (kind, identifier) in targets.items():
        if kind == "list":
            found[number] = url_for(f"dashboard.{identifier}")
        elif kind == "person" and identifier in people:
            found[number] = url_for("dashboard.administrator", administrator_id=people[identifier])
        elif identifier in there.get(kind, ()):
            found[number] = _address(kind, identifier)
    return found


def target_of(action: str, subject: str) -> Target | None:
    """The target that a subject names; None for actions that delete, and for subjects of other forms."""
    first, last = subject.partition("/")[0], subject.rpartition(" ")[2]
    if action in _LISTS:
        return Target("list", _LISTS[action])
    if action in _PEOPLE:
        return Target("person", subject)
    if action in _USERS and USER_ID.fullmatch(first):
        return Target("user", first)
    # ``old to new``
    if action == "renameUser" and USER_ID.fullmatch(last):
        return Target("user", last)
    # ``slug``, ``old to new``, ``3 to slug`` or ``user from slug``
    if action in _ORGANIZATIONS and SLUG.fullmatch(last):
        return Target("organization", last)
    if action in _GRANTS and SLUG.fullmatch(first):
        return Target("organization", first)
    if action in _WEBHOOKS and WEBHOOK_ID.fullmatch(first):
        return Target("webhook", first)
    return None


def _of(targets: Iterable[Target], kind: str) -> list[str]:
    return sorted({each.identifier for each in targets if each.kind == kind})


def _address(kind: str, identifier: str) -> str:
    if kind == "user":
        return url_for("dashboard.user", custom_id=identifier)
    if kind == "organization":
        return url_for("dashboard.organization", slug=identifier)
    return url_for("dashboard.webhook", webhook_id=identifier)


# Rows of one statement, and of one export.
BATCH = 1000
MOST = 100_000
COLUMNS = ("time", "actor", "action", "target", "changes")


def csv_lines(filtered: AuditFilter, stores: Stores) -> Iterator[str]:
    """The header, then the newest ``MOST`` records that match, a batch at a time."""
    database = stores.database
    yield _csv([COLUMNS])
    before: int | None = None
    for _ in range(MOST // BATCH):
        with database.reading() as session:
            rows = audit.page(session, filtered, before=before, limit=BATCH)
        if rows:
            before = rows[-1].id
            yield _csv([_cells(each) for each in rows])
        if len(rows) < BATCH:
            return


def _cells(row: AuditRecord) -> tuple[str, ...]:
    changes = "; ".join(
        f"{name}: {'none' if old is None else old} to {'none' if new is None else new}"
        for name, (old, new) in (row.changes or {}).items()
    )
    return (f"{row.created_at:%Y-%m-%dT%H:%M:%SZ}", row.actor, row.action, row.subject, changes)


def _csv(rows: list[tuple[str, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


# Spreadsheets take a cell that begins with one of these for a formula.
# https://owasp.org/www-community/attacks/CSV_Injection
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def harmless(text: str) -> str:
    """The text; an apostrophe before it keeps a spreadsheet from calculating it."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
