"""The content of the pages under test: the demo organization, and realistic difficult names."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.cli import demo
from app.schemas.availability import WEEKDAYS
from providers.base import PRIMARY
from providers.sandbox.client import Sandbox
from store.metrics.counters import GROUPS, STATUSES
from store.sql.models import (
    Administrator,
    ApiKey,
    DashboardSession,
    Invitation,
    OAuthConnection,
    Organization,
    Role,
    User,
    UserInvitation,
    WebhookEndpoint,
    now,
)
from store.sql.queries import (
    administrators,
    api_keys,
    audit,
    availability_profiles,
    connection_rows,
    connections,
    dashboard_sessions,
    deliveries,
    organization_grants,
    organizations,
    second_factors,
    user_invitations,
    users,
    webhook_events,
    webhooks,
)
from store.sql.queries.availability_profiles import StoredProfile
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.deliveries import AttemptResult
from store.sql.queries.organization_grants import NewGrant
from store.stores import Stores
from tests import people

HTML = "<b onmouseover=alert(1)>Ada & “Co”</b>"
RTL = "שלום עולם / لوحة التقويم"
EMOJI = "📅👩‍💻 Überraschung"
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
NAMES = (HTML, RTL, EMOJI, LONG)
FRIDAY = 4
ADDRESSES = ('"<i>x</i>"@example.com', "שלום@example.com", "a" * 60 + "@example.com", None)

# A calendar and an account that cannot be read.
UNREAD, UNREAD_MAIL = "<i>unread</i>", '"<b>unread</b>"@example.com'
# The user whose calendars and events have these names, and the user whose only calendar cannot be read.
COLLECTOR, UNREADABLE = "odd.calendars", "odd.unreadable"

# The users who are read by a grant, and by one that has ended.
DELEGATED, UNDELEGATED = "odd.delegated", "odd.undelegated"
GOOGLE_GRANT = NewGrant(
    provider="google",
    subject=ADDRESSES[0],
    client_email="almanac@acme-calendars.iam.gserviceaccount.com",
    tenant=None,
    client_id=None,
    secret="{}",
    scope=["https://www.googleapis.com/auth/calendar"],
)
MICROSOFT_GRANT = NewGrant(
    provider="microsoft",
    subject=None,
    client_email=None,
    tenant="3aa9e1e8-3e55-4d5c-9d57-0f5c9b8f9a10",
    client_id=None,
    secret=None,
    scope=["Calendars.ReadWrite", "MailboxSettings.Read"],
)

# Tables to empty afterwards. Deletes cascade to the other tables, except the audit log, which is kept.
KEYS = (
    *(User.id, Organization.id, ApiKey.id, WebhookEndpoint.id, Administrator.id),
    *(Invitation.digest, DashboardSession.id),
)

ANSWERS = (
    AttemptResult(200, None),
    AttemptResult(500, "answered 500"),
    AttemptResult(None, "no answer within 15 seconds"),
    AttemptResult(410, "answered 410"),
)


def fill(stores: Stores, sandbox_url: str, *, administrator: str) -> Mapping[str, str]:
    """Fill the database; returns a value for each argument of paths."""
    demo.seed(stores, sandbox_url, report=lambda _: None)
    with stores.database.writing() as session:
        company = organizations.ids(session, [demo.SLUG], organization_id=None)[demo.SLUG]
        _end_access(session, company)
        odd = [_somebody(session, stores, n, company) for n in range(len(NAMES))]
        _calendars(session, stores, sandbox_url)
        slug = _organizations(session, odd)
        _grants(session, stores, company)
        invitation = _invitations(session, odd)
        _keys(session, company)
        endpoint = _webhooks(session, stores, company)
        mine, other = _administrators(session, stores, administrator)
        _audit_records(session, administrator)
        secret = administrators.invite(session)
        person = users.find(session, demo.PEOPLE[0].id, organization_id=None)
        assert person is not None
        _working_hours(session, person)
    with stores.database.writing() as session:
        delivery = _deliveries(session, company, endpoint)
    _activity(stores)
    return {
        "slug": slug,
        "custom_id": person.custom_id,
        "number": str(person.id),
        "provider": "google",
        "endpoint_id": endpoint,
        "webhook_id": endpoint,
        "delivery_id": delivery,
        "session_id": mine,
        "administrator_id": other,
        "secret": secret,
        "invitation": invitation,
    }


@contextmanager
def filled(stores: Stores, sandbox_url: str, *, administrator: str) -> Iterator[Mapping[str, str]]:
    """Fill the database within a context and empty it again, as other tests of the session share it."""
    with stores.database.reading() as session:
        before = {key: set(session.scalars(select(key))) for key in KEYS}
    try:
        yield fill(stores, sandbox_url, administrator=administrator)
    finally:
        with stores.database.writing() as session:
            for key, kept in before.items():
                session.execute(delete(key.class_).where(key.not_in(kept)))


def _end_access(session: Session, company: int) -> None:
    (dead,) = connection_rows.of_members(session, company)[demo.UNREADABLE]
    ended = {"alive": False, "ended_at": now(), "ended_because": f"Google says: {HTML} {LONG}"}
    session.execute(update(OAuthConnection).where(OAuthConnection.id == dead.id).values(ended))


def _working_hours(session: Session, person: User) -> None:
    """Hours that leave all times offered."""
    main = connection_rows.of_user(session, person.custom_id, organization_id=None) or []
    hours = [
        {"days": list(WEEKDAYS), "start": start, "end": end}
        for start, end in (("00:00", "12:00"), ("12:00", "00:00"))
    ]
    profile = StoredProfile(
        schedules=hours,
        overrides=[{"date": "2037-12-24", "windows": []}],
        calendars=[{"connectionId": each.public_id, "calendarId": PRIMARY} for each in main],
    )
    availability_profiles.store(session, person.id, profile)


def _somebody(session: Session, stores: Stores, number: int, company: int) -> int:
    row = User(custom_id=f"odd.{number}" + "-long" * 20 * (number == 3))
    session.add(row)
    session.flush()
    organizations.add_members(session, company, [row.id])
    if number == 0:
        # A user without connections.
        return row.id
    connections.replace(
        session,
        stores.keyring,
        user_id=row.id,
        provider=("google", "microsoft")[number % 2],
        email=ADDRESSES[number],
        scope=["openid", "https://www.googleapis.com/auth/calendar.readonly"],
        tokens=Tokens("access", None, None),
    )
    return row.id


def _calendars(session: Session, stores: Stores, sandbox_url: str) -> None:
    """Two users without an organization, where either would hide the other."""
    sandbox = Sandbox(sandbox_url)
    main, *others = (
        {"id": f"odd-{number}", "subject": name, "primary": not number} for number, name in enumerate(NAMES)
    )
    at = next_workday()
    hour = {"start": at.isoformat(), "end": (at + timedelta(hours=1)).isoformat()}
    collector = sandbox.account(
        "google",
        str(ADDRESSES[0]),
        calendars=[main, *others, {"id": UNREAD}],
        events=[
            *({"subject": name, "calendarId": main["id"], **hour} for name in NAMES),
            *({"subject": "1:1", "calendarId": each["id"], **hour} for each in others),
        ],
    )
    sandbox.fault(email=collector.email, calendar_id=UNREAD, status=500)
    unread = {"primary": True, "errorReason": "notFound"}
    unreadable = sandbox.account("google", UNREAD_MAIL, calendars=[unread])
    for custom_id, account in ((COLLECTOR, collector), (UNREADABLE, unreadable)):
        user = people.connected(session, stores.keyring, custom_id, account)
        # No time zone has this name, so that it is not shown.
        session.execute(
            update(OAuthConnection).where(OAuthConnection.user_id == user.id).values(time_zone=HTML)
        )
        _working_hours(session, user)


def next_workday() -> datetime:
    """The start of the events with difficult names: at nine, on the next day from Monday to Friday."""
    day = datetime.now(UTC) + timedelta(days=1)
    while day.weekday() > FRIDAY:
        day += timedelta(days=1)
    return day.replace(hour=9, minute=0, second=0, microsecond=0)


def _activity(stores: Stores) -> None:
    """Count every kind of event over some hours."""
    for ago in range(0, 120, 5):
        for number, group in enumerate(GROUPS):
            for status in STATUSES:
                stores.counters.request(group, status, 0.003 * (number + 1) * (1 + ago % 3))
        stores.counters.cache(hits=ago, stale=3, misses=7)
        for provider in ("google", "microsoft"):
            stores.counters.read(provider, 0.08 + ago / 1000)
            stores.counters.write(provider, 0.2)
            stores.counters.failure(provider, "rateLimited")
        stores.counters.flush(now=round(time.time() - ago * 60) * 1000)


def _organizations(session: Session, people: Sequence[int]) -> str:
    for number, name in enumerate(NAMES):
        row = Organization(slug=f"odd-{number}", name=name)
        session.add(row)
        session.flush()
        organizations.add_members(session, row.id, people)
    return demo.SLUG


def _grants(session: Session, stores: Stores, company: int) -> None:
    """Grants of the demo organization and of one with difficult names; that of Microsoft has ended."""
    odd = organizations.ids(session, ["odd-0"], organization_id=None)["odd-0"]
    for organization in (company, odd):
        if organization_grants.of_organization(session, organization):
            continue
        google = organization_grants.save(session, stores.keyring, organization, GOOGLE_GRANT)
        microsoft = organization_grants.save(session, stores.keyring, organization, MICROSOFT_GRANT)
        organization_grants.mark_dead(session, microsoft.id, f"Microsoft says: {HTML} {LONG}")
    rows = {name: User(custom_id=name) for name in (DELEGATED, UNDELEGATED)}
    session.add_all(rows.values())
    session.flush()
    organizations.add_members(session, odd, [each.id for each in rows.values()])
    organization_grants.delegate(session, google, {rows[DELEGATED].id: str(ADDRESSES[0])})
    organization_grants.delegate(session, microsoft, {rows[UNDELEGATED].id: str(ADDRESSES[1])})


def _invitations(session: Session, people: Sequence[int]) -> str:
    """One in each state; returns the secret of the one that can still be opened."""
    ended: tuple[Mapping[str, datetime], ...] = (
        {"revoked_at": now()},
        {"opened_at": now()},
        {"opened_at": now(), "connected_at": now()},
        {"expires_at": now() - timedelta(days=2)},
    )
    for user, values in zip(people, ended, strict=True):
        _invite(session, user)
        newest = user_invitations.latest(session, [user])[user]
        session.execute(update(UserInvitation).where(UserInvitation.id == newest.id).values(**values))
    return _invite(session, people[0])


def _invite(session: Session, user: int) -> str:
    issuer = people.add_operator(session, f"inviter {secrets.token_hex(4)}")
    (made,) = user_invitations.make(session, {"odd": user}, scope="write", created_by=HTML, issuer=issuer)
    return made.secret


def _keys(session: Session, company: int) -> None:
    for number, name in enumerate(NAMES):
        api_keys.create(session, prefix="alm_", name=name, organization_id=company if number % 2 else None)
    api_keys.create(
        session, prefix="alm_", name="reads", read_only=True, expires_at=now() + timedelta(days=9)
    )
    api_keys.create(
        session, prefix="alm_", name="over", shows_tokens=True, expires_at=now() - timedelta(days=9)
    )
    ended = api_keys.create(session, prefix="alm_", name="taken back")
    api_keys.revoke(session, ended, prefix="alm_")


def _webhooks(session: Session, stores: Stores, company: int) -> str:
    url = f"https://hooks.example.com/{LONG}?token=x&b=<b>"
    events = tuple(webhook_events.WebhookEvent)
    webhooks.create(
        session, stores.keyring, url="https://example.com/", events=events[:1], organization_id=None
    )
    row, _ = webhooks.create(session, stores.keyring, url=url, events=events, organization_id=company)
    return row.id


def _deliveries(session: Session, company: int, endpoint: str) -> str:
    living = [
        each for refs in connection_rows.of_members(session, company).values() for each in refs if each.alive
    ]
    for answer, connection in zip(ANSWERS, living, strict=False):
        webhook_events.record(
            session, webhook_events.WebhookEvent.CALENDAR_CHANGED, connection.id, calendar_id=HTML
        )
        session.flush()
        claimed = deliveries.claim(session, endpoint, until=now() + timedelta(seconds=30))
        assert claimed is not None
        if answer.error is None:
            deliveries.delivered(session, claimed, answer, most_attempts=10)
        else:
            deliveries.failed(session, claimed, answer, again_at=now() + timedelta(hours=1))
    webhook_events.record(session, webhook_events.WebhookEvent.CONNECTION_RESTORED, living[0].id)
    return claimed.id


def _administrators(session: Session, stores: Stores, administrator: str) -> tuple[str, str]:
    """The id of a session of the administrator, and the id of another person with a session."""
    for name, role in zip(NAMES, (*Role, Role.VIEWER), strict=True):
        other = administrators.create(session, name=name, password_hash="nobody's", role=role)
    second_factors.store(session, stores.keyring, other.id, second_factors.new_secret(), step=1)
    second_factors.new_recovery_codes(session, other.id)
    dashboard_sessions.begin(session, other.id, address="192.0.2.1", agent=HTML)
    found = administrators.find(session, administrator)
    assert found is not None
    for agent in ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", HTML):
        dashboard_sessions.begin(session, found.id, address="2001:db8::1", agent=agent)
    session.flush()
    mine = select(DashboardSession.id).where(DashboardSession.administrator_id == found.id)
    return session.scalars(mine.where(DashboardSession.agent == HTML)).one(), str(other.id)


def _audit_records(session: Session, administrator: str) -> None:
    for number in range(60):
        audit.record(
            session,
            actor=f"administrator {administrator}" if number % 2 else "alm_abcdefgh",
            action="show token",
            subject=NAMES[number % 4],
            changes={"name": (NAMES[number % 4], None)} if number % 3 == 0 else None,
        )
