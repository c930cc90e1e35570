"""Links from records of the audit log to the pages of what they changed, where it still exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from flask import url_for
from sqlalchemy.orm import Session

from app.dashboard.sign_in import roles
from app.schemas.fields import SLUG, USER_ID, WEBHOOK_ID
from store.sql.models import AuditRecord
from store.sql.queries import administrators, organizations, users, webhooks

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


def links(session: Session, records: Sequence[AuditRecord]) -> Mapping[int, str]:
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
