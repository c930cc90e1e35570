"""The audit log: who did what, and when; its filters, its links to what a record is about, and its export."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, date, datetime, time, timedelta
from typing import NamedTuple

from flask import Response, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.dashboard.blueprint import blp, page
from app.dashboard.pagination import MAX_SEARCH, ROWS, number_before, same_list
from app.dashboard.sign_in import roles
from app.schemas.fields import CONTROL, SLUG, USER_ID, WEBHOOK_ID
from app.services import services
from store.sql.models import AuditRecord, now
from store.sql.queries import administrators, audit, organizations, users, webhooks
from store.sql.queries.audit import AuditFilter
from store.stores import Stores

# Rows of one statement.
BATCH = 1000


@blp.get("/audit")
def audit_log() -> ResponseReturnValue:
    """The records that match the filters, the newest first."""
    filtered, before = read_filters(), number_before()
    with services().stores.database.reading() as session:
        rows = audit.page(session, filtered.query, before=before, limit=BATCH)
        every = audit.grouped(rows)
        shown = every[:ROWS]
        links = links_of(session, [row for each in shown for row in each])
    more = len(every) > ROWS or len(rows) == BATCH
    return page("audit_log.html", entries=shown, more=more, filters=filtered, before=before, links=links)


@blp.get("/audit/export")
def export_audit_log() -> ResponseReturnValue:
    """The records that match the filters, as CSV."""
    filtered = read_filters()
    response = Response(csv_lines(filtered.query, services().stores), mimetype="text/csv")
    name = f"audit-log-{now():%Y-%m-%d}.csv"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


# The arguments in addresses. A date in the search is a day, and two are the first and the last one.
TEXTS = ("q", "person", "action", "target")
_DATE = re.compile(r"(?<!\S)\d{4}-\d\d-\d\d(?!\S)")


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a request: ``values`` as they were written, and the query."""

    values: Mapping[str, str]
    query: AuditFilter

    @property
    def narrow(self) -> bool:
        """Whether any filter is set."""
        return any(self.values.values())

    @property
    def chosen(self) -> list[tuple[str, str]]:
        """The filters beside the search, as words, each with the address without it."""
        return [
            (f"{name}: {value}", same_list("audit_log", **{name: None, "before": None}))
            for name, value in self.values.items()
            if value and name != "q"
        ]


def read_filters() -> Filters:
    """The filters of this request."""
    values = {name: _text(name) for name in TEXTS}
    days = sorted(day for each in _DATE.findall(values["q"]) if (day := _day(each)) is not None)
    query = AuditFilter(
        text=" ".join(_DATE.sub(" ", values["q"]).split()) if days else values["q"],
        actor=values["person"],
        action=values["action"],
        subject=values["target"],
        since=_midnight(days[0]) if days else None,
        # The last day belongs to what is found.
        before=_midnight(days[-1] + timedelta(days=1)) if days else None,
    )
    return Filters(values, query)


def _text(name: str) -> str:
    return CONTROL.sub("", request.args.get(name, "")).strip()[:MAX_SEARCH]


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    # The day after the last one, which bounds a range, has to exist.
    return day if day.year < MAXYEAR else None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


# The kind of what an action's subject names.
_KINDS = {
    **dict.fromkeys(("createUser", "connect", "makeLink", "deleteConnection", "showToken"), "user"),
    **dict.fromkeys(("createHold", "inviteUser", "revokeInvitation"), "user"),
    **dict.fromkeys(("createOrganization", "changeOrganization", "changeQuotas"), "organization"),
    **dict.fromkeys(("addMembers", "removeMember"), "organization"),
    **dict.fromkeys(("createWebhook", "changeWebhook", "rotateWebhookSecret"), "webhook"),
    **dict.fromkeys(("testWebhook", "replayDelivery", "replayFailedDeliveries"), "webhook"),
    **dict.fromkeys(("createAdministrator", "changeRole", "changePassword", "endSession"), "person"),
    **dict.fromkeys(("enableSecondFactor", "disableSecondFactor", "resetSecondFactor"), "person"),
    "createRecoveryCodes": "person",
}
# Pages that show all of a kind.
_LISTS = {
    **dict.fromkeys(("createKey", "revokeKey"), "keys"),
    **dict.fromkeys(("saveRegistration", "removeRegistration"), "settings"),
}


class AuditTarget(NamedTuple):
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


def target_of(action: str, subject: str) -> AuditTarget | None:
    """The target that a subject names; None for actions that delete, and for subjects of other forms."""
    first, last = subject.partition("/")[0], subject.rpartition(" ")[2]
    if action in _LISTS:
        return AuditTarget("list", _LISTS[action])
    kind = _KINDS.get(action)
    if kind == "person":
        return AuditTarget("person", subject)
    # ``ada``, ``ada/google``
    if kind == "user" and USER_ID.fullmatch(first):
        return AuditTarget("user", first)
    # ``old to new``
    if action == "renameUser" and USER_ID.fullmatch(last):
        return AuditTarget("user", last)
    # ``slug``, ``old to new``, ``3 to slug`` or ``user from slug``
    if kind == "organization" and SLUG.fullmatch(last):
        return AuditTarget("organization", last)
    if action in ("storeGrant", "importMembers") and SLUG.fullmatch(first):
        return AuditTarget("organization", first)
    if kind == "webhook" and WEBHOOK_ID.fullmatch(first):
        return AuditTarget("webhook", first)
    return None


def _of(targets: Iterable[AuditTarget], kind: str) -> list[str]:
    return sorted({each.identifier for each in targets if each.kind == kind})


def _address(kind: str, identifier: str) -> str:
    if kind == "user":
        return url_for("dashboard.user", custom_id=identifier)
    if kind == "organization":
        return url_for("dashboard.organization", slug=identifier)
    return url_for("dashboard.webhook", webhook_id=identifier)


# Rows of one export.
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
