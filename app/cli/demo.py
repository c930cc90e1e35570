"""The demo organization: people and rooms on both providers, in several time zones, with realistic weeks."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import click
import requests
from sqlalchemy.orm import Session

from app.cli import administrator_setup, booking
from app.server.supervisor import Supervisor
from providers.sandbox.client import Sandbox, SandboxAccount, SandboxDomain
from store.config.settings import read_settings
from store.security.crypto import visible_part
from store.sql.models import Organization, User
from store.sql.queries import api_keys, audit, connections, organization_grants, organizations, users
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.organization_grants import NewGrant
from store.stores import Stores

SLUG = "demo"
WEEKS = 8

Report = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Person:
    """A user of the demo organization. ``meetings`` is their number on an ordinary day.

    A user ``by_grant`` has no connections with tokens: the organization's grant reads the mailbox.
    """

    id: str
    providers: tuple[str, ...]
    zone: str
    meetings: int
    away: int | None = None  # the day, counted from Monday of this week, on which two days off begin
    by_grant: bool = False
    room: bool = False


PEOPLE = (
    Person("ada", ("google",), "Europe/London", 3),
    Person("bruno", ("google",), "Europe/Berlin", 4),
    Person("chiara", ("microsoft",), "Europe/Rome", 3, away=9),
    Person("dmitri", ("microsoft",), "Asia/Kolkata", 2),
    Person("emiko", ("google", "microsoft"), "Asia/Tokyo", 3),
    Person("farah", ("microsoft",), "America/New_York", 5),
    Person("gabriel", ("google",), "America/Sao_Paulo", 2, away=14),
    Person("hana", ("google",), "Europe/Berlin", 3),
    Person("ines", ("google",), "Europe/London", 3, by_grant=True),
    Person("kamal", ("microsoft",), "Europe/Berlin", 4, by_grant=True),
    Person("room-lagoon", ("microsoft",), "Europe/Berlin", 4, by_grant=True, room=True),
    Person("room-meadow", ("microsoft",), "Europe/Berlin", 2, by_grant=True, room=True),
)
DOMAINS = {"google": "example.com", "microsoft": "example.onmicrosoft.com"}
# The account that free/busy of Google is read as.
SUBJECT = "admin@example.com"
# The scopes that the sandbox's administrators have authorized.
SCOPES = {
    "google": ("https://www.googleapis.com/auth/calendar",),
    "microsoft": ("Calendars.ReadWrite", "MailboxSettings.Read"),
}
# Her grant is revoked, so that the demo shows how the API reports it.
UNREADABLE = "hana"
# A visitor of the booking page meets the first of them and one of the others.
BOOKABLE = ("ada", "bruno", "emiko", "gabriel")
# The name for signing in to the dashboard.
ADMINISTRATOR = "demo"
# A user without accounts, for trying to connect one by browser.
GUEST = "you"

TOPICS = (
    "Design review",
    "1:1",
    "Customer call",
    "Planning",
    "Interview",
    "Retrospective",
    "Pairing",
    "Roadmap",
)


def run(port: int, sandbox_port: int, booking_port: int, host: str) -> None:
    """Start everything in a temporary data folder, seed it, and serve until Ctrl-C."""
    with tempfile.TemporaryDirectory(prefix="almanac-demo-") as folder:
        # Ignore the environment's settings: the demo must not write into an existing installation.
        for name in [name for name in os.environ if name.startswith("ALMANAC_")]:
            del os.environ[name]
        os.environ["ALMANAC_DATA_DIR"] = folder
        others = {"--booking-port": booking_port}
        with ExitStack() as stack, Supervisor(port, sandbox_port, host=host, others=others) as supervisor:
            with Stores(read_settings()) as stores:
                key = seed(stores, f"http://127.0.0.1:{sandbox_port}", report=click.echo)
                password = secrets.token_urlsafe(12)
                administrator_setup.create(stores, ADMINISTRATOR, password)
            links = _links(supervisor.url, key)
            app = booking.create_app(supervisor.url, key, offer())
            page = stack.enter_context(booking.serving(app, booking_port, host))
            click.echo(_instructions(supervisor.url, page, key, password, links))
            supervisor.wait()
            # A second Ctrl-C must not interrupt the cleanup, after which the process ends.
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def seed(stores: Stores, sandbox_url: str, *, report: Report, first: date | None = None) -> str:
    """Create the demo organization, or reset it; returns a new API key bound to it.

    Its calendars begin in the week of ``first``, a day in UTC; by default this week.
    """
    first = first or datetime.now(UTC).date()
    monday = first - timedelta(days=first.weekday())
    sandbox = Sandbox(sandbox_url)
    rooms = sum(person.room for person in PEOPLE)
    report(f"Creating {len(PEOPLE) - rooms} people and {rooms} rooms with their calendars ...")
    accounts = {
        person.id: [_account(sandbox, person, name, monday) for name in person.providers] for person in PEOPLE
    }
    domains = [
        sandbox.domain("google", DOMAINS["google"], subject=SUBJECT),
        sandbox.domain("microsoft", DOMAINS["microsoft"]),
    ]
    with stores.database.writing() as session:
        organization_id = _organization(session)
        user_ids = {person.id: _user(session, person.id) for person in PEOPLE}
        organizations.add_members(session, organization_id, user_ids.values())
        for person in PEOPLE:
            if not person.by_grant:
                for account in accounts[person.id]:
                    _connect(session, stores, user_ids[person.id], account)
        grants = [_grant(session, stores, organization_id, domain, user_ids) for domain in domains]
        key = api_keys.create(
            session, prefix=stores.settings.api_key_prefix, name="demo", organization_id=organization_id
        )
        visible = visible_part(key, stores.settings.api_key_prefix)
        audit.record(session, actor=audit.COMMAND_LINE, action="createKey", subject=visible)
    for grant in grants:
        # Its tokens are those of the sandbox's earlier domain.
        stores.grant_tokens.forget(grant)
    sandbox.revoke(_address(UNREADABLE, "google"))
    report(f"Organization {SLUG} is ready; {UNREADABLE} has withdrawn access to her calendar")
    return key


def week_of(person: Person, monday: date) -> Iterator[dict[str, Any]]:
    """The events of a person for ``WEEKS`` weeks from ``monday``, in local time; deterministic."""
    dice = random.Random(person.id)
    for day in (monday + timedelta(days=n) for n in range(7 * WEEKS)):
        if day.weekday() >= 5:
            continue
        if not person.room:
            yield _event("Stand-up", day, time(9, 30), 15)
        if not person.room and dice.random() < 0.7:
            yield _event("Lunch", day, time(12, 30), 45)
        hours = dice.sample(range(10, 18), person.meetings)
        for hour in sorted(hours):
            yield _event(dice.choice(TOPICS), day, time(hour), dice.choice((30, 30, 45, 60)))
        if not person.room and day.weekday() == 2:
            yield _event("Focus time", day, time(14), 120)
    if person.away is not None:
        first = monday + timedelta(days=person.away)
        yield {
            "subject": "Out of office",
            "start": first.isoformat(),
            "end": (first + timedelta(days=2)).isoformat(),
            "allDay": True,
            "showAs": "oof",
        }


def offer() -> booking.Offer:
    """The offer of the booking page: half an hour with Ada and one of her colleagues, in her office hours."""
    people = {person.id: person for person in PEOPLE}
    team = [people[name] for name in BOOKABLE]
    days = ("monday", "tuesday", "wednesday", "thursday", "friday")
    return booking.Offer(
        team=tuple(
            booking.Person(each.id, each.id.title(), _address(each.id, each.providers[0])) for each in team
        ),
        provider=team[0].providers[0],
        timeZone=team[0].zone,
        schedules=({"days": days, "start": "09:00", "end": "17:00"},),
    )


def _event(subject: str, day: date, at: time, minutes: int) -> dict[str, Any]:
    start = datetime.combine(day, at)
    return {
        "subject": subject,
        "start": start.isoformat(),
        "end": (start + timedelta(minutes=minutes)).isoformat(),
        "showAs": "busy",
    }


def _account(sandbox: Sandbox, person: Person, provider: str, monday: date) -> SandboxAccount:
    return sandbox.account(
        provider,
        _address(person.id, provider),
        time_zone=person.zone,
        events=week_of(person, monday),
    )


def _address(person: str, provider: str) -> str:
    return f"{person}@{DOMAINS[provider]}"


def _organization(session: Session) -> int:
    found = organizations.ids(session, [SLUG], organization_id=None)
    if found:
        return found[SLUG]
    row = Organization(slug=SLUG, name="Demo company")
    session.add(row)
    session.flush()
    return row.id


def _user(session: Session, custom_id: str) -> int:
    row = users.find(session, custom_id, organization_id=None)
    if row is None:
        row = User(custom_id=custom_id)
        session.add(row)
        session.flush()
    return row.id


def _connect(session: Session, stores: Stores, user_id: int, account: SandboxAccount) -> None:
    tokens = Tokens(account.access_token, account.refresh_token, account.expires_at)
    connections.replace(
        session,
        stores.keyring,
        user_id=user_id,
        provider=account.provider,
        email=account.email,
        scope=account.scope.split(),
        tokens=tokens,
    )


def _grant(
    session: Session, stores: Stores, organization_id: int, domain: SandboxDomain, user_ids: Mapping[str, int]
) -> str:
    """Store the grant of a domain, and delegate its mailboxes; returns the grant's id."""
    google = domain.provider == "google"
    key = domain.service_account_key
    grant = NewGrant(
        provider=domain.provider,
        subject=domain.subject if google else None,
        client_email=key["client_email"] if google else None,
        tenant=None if google else domain.tenant,
        client_id=None if google else domain.client_id,
        secret=json.dumps(key) if google else domain.client_secret,
        scope=SCOPES[domain.provider],
    )
    saved = organization_grants.save(session, stores.keyring, organization_id, grant)
    emails = {
        user_ids[person.id]: _address(person.id, domain.provider)
        for person in PEOPLE
        if person.by_grant and domain.provider in person.providers
    }
    organization_grants.delegate(session, saved, emails)
    return saved.id


def _links(url: str, key: str) -> list[dict[str, str]]:
    """Create the user ``GUEST``; returns the links that connect accounts to it."""
    with requests.Session() as session:
        # Ignore the environment's proxies: the server is on this machine.
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {key}"
        session.post(f"{url}/v1/users", json={"id": GUEST}, timeout=10).raise_for_status()
        answer = session.get(f"{url}/v1/users/{GUEST}/oauth/links", timeout=10)
        answer.raise_for_status()
        links: list[dict[str, str]] = answer.json()["data"]
        return links


def _instructions(url: str, booking_page: str, key: str, password: str, links: list[dict[str, str]]) -> str:
    day = datetime.now(UTC).date() + timedelta(days=1)
    while day.weekday() >= 5:
        day += timedelta(days=1)
    query = (
        f"start={day}&end={day + timedelta(days=1)}"
        "&earliestTimeEachDay=09:00&latestTimeEachDay=17:00&slotDuration=60&limit=1"
    )
    connect = "\n".join(f"  {each['provider']:<10} {each['link']}\n" for each in links)
    return f"""
Dashboard    {url}/dashboard
             sign in as {ADMINISTRATOR} with the password {password}
Booking page {booking_page}
             an example of what can be built; see examples/booking
API          {url}
Documents    {url}/docs
Description  {url}/v1/docs
API key      {key}

When is each of the demo company first free for an hour on {day:%A}?

  curl -s -H 'Authorization: Bearer {key}' -H 'x-timezone: Europe/Berlin' \\
    '{url}/v1/organizations/{SLUG}/scheduling?{query}' \\
    | python3 -m json.tool

Connect an account to the user "{GUEST}" by browser. Each link works once, within ten minutes;
{url}/v1/users/{GUEST}/oauth/links makes new ones:

{connect}
Ctrl-C ends the demo; nothing is kept.
"""
