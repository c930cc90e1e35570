"""What needs attention: one list for the overview, and the same kinds as filters of the list of users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from flask import url_for
from sqlalchemy.orm import Session

from app.accounts.oauth_clients import Registration
from app.dashboard import connection_badge
from app.dashboard.overview import unread
from app.dashboard.sign_in import roles
from providers import registry
from store.cache.last_reads import LastRead
from store.sql.models import User
from store.sql.queries import attention, connection_rows, connections, organization_grants, user_invitations
from store.sql.queries.attention import OtherCounts, ScopesWithoutCalendars, ScopeText, UserCounts, UserKind
from store.sql.queries.connection_rows import ConnectionRef
from store.sql.queries.connections import LONG_AGO

# The overview names at most this many of each kind.
MAX_NAMED = 5

# The value of ``show`` for users of any kind.
ANY = "attention"

ADVICE = {
    UserKind.NO_CALENDARS: "The account is connected, but the permission for calendars was not granted.",
    UserKind.EXPIRING: "Without a refresh token, the access ends when its token expires.",
    UserKind.NEVER: "Registered, but no account was ever connected.",
}


class Subject(NamedTuple):
    """Something that needs attention: its name, its page, and what is known about it."""

    name: str
    address: str
    note: str = ""
    at: datetime | None = None


class AdviceLink(NamedTuple):
    """A link, or an action that a link leads to."""

    title: str
    address: str


@dataclass(frozen=True, slots=True)
class Item:
    """One kind of thing that needs attention. ``every`` lists all of them.

    ``action`` resolves it; None if the role of the signed-in person does not permit that.
    """

    id: str
    title: str
    kind: str
    count: int
    advice: str
    subjects: Sequence[Subject]
    every: AdviceLink | None
    action: AdviceLink | None


def items(session: Session, registrations: Iterable[Registration]) -> list[Item]:
    """Everything that needs attention, the most urgent first; kinds without any are left out."""
    useless = useless_scopes(attention.scope_texts(session))
    failed = unread.failing()
    counts, others = attention.user_counts(session, useless, failed), attention.other_counts(session)
    # The first item counts ended accounts too.
    kinds = [kind for kind in UserKind if kind is not UserKind.ENDED]
    found = [
        _unbookable(session, failed, counts, useless),
        _registrations(registrations),
        _webhooks(session, others),
        _grants(session, others),
        *(_users(session, kind, counts, useless) for kind in kinds),
        _keys(session, others),
    ]
    return [each for each in found if each.count]


def _unbookable(
    session: Session, failed: Sequence[str], counts: UserCounts, useless: ScopesWithoutCalendars
) -> Item:
    """Users whose account has ended, or whose last read failed: those first with whom it began last."""
    found = [*_ended(session), *_failing(session, failed)]
    subjects = sorted(found, key=lambda each: each.at or LONG_AGO, reverse=True)[:MAX_NAMED]
    names = ",".join(dict.fromkeys(each.name for each in subjects))
    helped = attention.any_to_invite(session, attention.cannot_be_booked(failed), useless)
    invite = _action("Invite them to reconnect", "new_invitations", show=unread.SHOW) if helped else None
    return Item(
        "unbookable",
        unread.TITLE,
        "bad",
        counts.unbookable,
        "Their account has ended, or its last read failed, so no times are offered.",
        subjects,
        AdviceLink("Show all", url_for("dashboard.users", show=unread.SHOW)),
        invite or AdviceLink("Show in the explorer", url_for("dashboard.explorer", users=names, show=1)),
    )


def _failing(session: Session, failed: Sequence[str]) -> list[Subject]:
    """The accounts that have not ended and began to fail last."""
    living = attention.living(session, failed)
    named = [each for each in failed if each in living][:MAX_NAMED]
    refs, reads = connection_rows.by_id(session, named), unread.last_reads(named)
    return [
        Subject(
            refs[each].user,
            url_for("dashboard.user", custom_id=refs[each].user),
            f"{_account(refs[each])}: {_sentence(reads[each])} "
            + unread.advice(reads[each], delegated=refs[each].grant is not None),
            reads[each].since_moment,
        )
        for each in named
        if each in refs and each in reads
    ]


def _sentence(read: LastRead) -> str:
    message = read.message or ""
    return message if message.endswith(".") else f"{message}."


def _account(ref: ConnectionRef) -> str:
    return ": ".join(filter(None, (registry.title(ref.provider), ref.email)))


def useless_scopes(texts: Iterable[ScopeText]) -> ScopesWithoutCalendars:
    """The scopes by which no busy time can be read."""
    found: dict[str, list[str]] = {}
    for each in texts:
        if not registry.scopes(each.provider).shows_times(each.scope):
            found.setdefault(each.provider, []).append(each.text)
    return found


def _users(session: Session, kind: UserKind, counts: UserCounts, useless: ScopesWithoutCalendars) -> Item:
    subjects = _named(session, kind, useless)
    verb = "Invite them to connect" if kind is UserKind.NEVER else "Invite them to reconnect"
    helped = attention.any_to_invite(session, attention.has_problem(kind, useless), useless)
    action = _action(verb, "new_invitations", show=kind.value) if helped else None
    every = AdviceLink("Show all", url_for("dashboard.users", show=kind.value))
    return Item(
        kind.value,
        connection_badge.KIND_TITLES[kind],
        "warn",
        counts.of(kind),
        ADVICE[kind],
        subjects,
        every,
        action,
    )


def _ended(session: Session) -> list[Subject]:
    """The connections that ended last. Those of an ended grant are not named: its organization is."""
    return [
        Subject(
            each.user,
            url_for("dashboard.user", custom_id=each.user),
            ": ".join(filter(None, (registry.title(each.provider), each.email, each.ended_because))),
            each.ended_at,
        )
        for each in connections.dead(session, limit=MAX_NAMED)
    ]


def _named(session: Session, kind: UserKind, useless: ScopesWithoutCalendars) -> list[Subject]:
    rows = attention.users(session, kind, useless, limit=MAX_NAMED)
    if kind is UserKind.NEVER:
        invited = user_invitations.latest(session, [each.id for each in rows])
        return [
            Subject(
                each.custom_id,
                url_for("dashboard.user", custom_id=each.custom_id),
                connection_badge.invitation_sentence(invited.get(each.id)),
            )
            for each in rows
        ]
    return [_subject(kind, row) for row in rows]


def _subject(kind: UserKind, row: User) -> Subject:
    address = url_for("dashboard.user", custom_id=row.custom_id)
    if kind is UserKind.EXPIRING:
        moments = [
            each.expires_at
            for each in row.connections
            if each.expires_at is not None and each.sealed_refresh_token is None
        ]
        return Subject(row.custom_id, address, at=min(moments, default=None))
    titles = [registry.title(each.provider) for each in row.connections]
    return Subject(row.custom_id, address, ", ".join(titles))


def _registrations(registrations: Iterable[Registration]) -> Item:
    settings = url_for("dashboard.settings")
    subjects = [
        Subject(each.title, f"{settings}#{each.provider}", _refusal(each))
        for each in registrations
        if each.source != "nowhere" and (not each.configured or (each.checked and not each.checked.accepted))
    ]
    advice = "Until it is corrected, no account can be connected and no access is refreshed."
    verb = "Correct the registration" if roles.may("save_registration") else "See the registration"
    action = AdviceLink(verb, subjects[0].address if subjects else settings)
    return Item("registrations", "Registration refused", "bad", len(subjects), advice, subjects, None, action)


def _refusal(registration: Registration) -> str:
    if not registration.configured:
        return "the saved secret cannot be decrypted"
    checked = registration.checked
    return (
        checked.sentence if checked else ""
    ) or "the provider does not accept the client ID and the secret"


def _webhooks(session: Session, counts: OtherCounts) -> Item:
    rows = attention.webhooks(session, limit=MAX_NAMED)
    subjects = [
        Subject(
            each.url,
            url_for("dashboard.webhook", webhook_id=each.id),
            "disabled: it answered that it is gone" if each.disabled_at else each.error or "",
            each.disabled_at or each.attempted_at,
        )
        for each in rows
    ]
    every = url_for("dashboard.webhooks", show="failing")
    action = AdviceLink("See the failed deliveries", subjects[0].address if counts.webhooks == 1 else every)
    advice = "The last delivery was not accepted. Correct the receiver, then send the failed events again."
    return Item(
        "webhooks",
        "Failing webhooks",
        "bad",
        counts.webhooks,
        advice,
        subjects,
        AdviceLink("Show all", every),
        action,
    )


def _grants(session: Session, counts: OtherCounts) -> Item:
    rows = organization_grants.dead(session, limit=MAX_NAMED)
    subjects = [
        Subject(
            f"{each.organization} ({registry.title(each.provider)})",
            f"{url_for('dashboard.organization', slug=each.organization)}#grants",
            each.ended_because or "",
            each.ended_at,
        )
        for each in rows
    ]
    every = url_for("dashboard.organizations", show="ended-grants")
    verb = "Enter the grant again" if roles.may("store_grant") else "See the grant"
    action = AdviceLink(verb, subjects[0].address if counts.grants == 1 else every)
    advice = "The members of the organization cannot be read until the grant is entered again."
    return Item(
        "grants",
        "Ended grants",
        "bad",
        counts.grants,
        advice,
        subjects,
        AdviceLink("Show all", every),
        action,
    )


def _keys(session: Session, counts: OtherCounts) -> Item:
    rows = attention.keys(session, limit=MAX_NAMED)
    every = url_for("dashboard.keys", show="expiring")
    subjects = [Subject(each.name, every, each.visible, each.expires_at) for each in rows]
    advice = "Programs that use the key get 401 from then on. Create another key, and replace it there."
    action = _action("Create an API key", "new_key")
    title = "API keys about to expire"
    return Item("keys", title, "warn", counts.keys, advice, subjects, AdviceLink("Show all", every), action)


def _action(title: str, endpoint: str, show: str | None = None) -> AdviceLink | None:
    """A link to a page that resolves something; None where the person's role forbids the page."""
    return AdviceLink(title, url_for(f"dashboard.{endpoint}", show=show)) if roles.may(endpoint) else None


def failing(session: Session) -> Mapping[str, attention.FailingWebhook]:
    """The webhooks that are disabled or whose last attempt failed, by id."""
    return {each.id: each for each in attention.webhooks(session)}
