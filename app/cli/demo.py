"""The demo organization: people and rooms on both providers, in several time zones, with realistic weeks."""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import click
import requests
from sqlalchemy.orm import Session

from app.cli import administrator_setup, booking, demo_accounts, webhook_receiver
from app.server.supervisor import Supervisor
from providers.sandbox.client import Sandbox, SandboxAccount, SandboxDomain
from store.security.crypto import visible_part
from store.sql.models import Organization, User
from store.sql.queries import api_keys, audit, connections, organization_grants, organizations, users
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.connections import ReplacedConnection
from store.sql.queries.organization_grants import NewGrant
from store.stores import Stores
from workers.settings import read_settings

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
    # Has a second account with the first provider.
    private: bool = False


PEOPLE = (
    Person("ada", ("google",), "Europe/London", 3),
    Person("bruno", ("google",), "Europe/Berlin", 4),
    Person("chiara", ("microsoft",), "Europe/Rome", 3, away=9),
    Person("dmitri", ("microsoft",), "Asia/Kolkata", 2),
    Person("emiko", ("google", "microsoft"), "Asia/Tokyo", 3),
    Person("farah", ("microsoft",), "America/New_York", 5),
    Person("gabriel", ("google",), "America/Sao_Paulo", 2, away=14, private=True),
    Person("hana", ("google",), "Europe/Berlin", 3),
    Person("ines", ("google",), "Europe/London", 3, by_grant=True),
    Person("kamal", ("microsoft",), "Europe/Berlin", 4, by_grant=True),
    Person("room-lagoon", ("microsoft",), "Europe/Berlin", 4, by_grant=True, room=True),
    Person("room-meadow", ("microsoft",), "Europe/Berlin", 2, by_grant=True, room=True),
)
# Their calendars are not in the sandbox: at a CalDAV server, and in a feed that is not found.
BY_CALDAV = Person("noah", (), "Europe/Dublin", 3)
BY_FEED = Person("liv", (), "Europe/Oslo", 2)
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
# The lines that the receiver of the demo prints.
EVENTS = ("calendar.changed", "connection.expired", "connection.restored", "hold.expired")
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
        # The CalDAV server and the feeds of the demo are on this machine.
        for name in ("CALDAV_ALLOW_PRIVATE", "ICS_ALLOW_PRIVATE"):
            os.environ[f"ALMANAC_{name}"] = "true"
        os.environ["ALMANAC_ICS_REFRESH_SECONDS"] = "0"
        others = {"--booking-port": booking_port}
        with ExitStack() as stack, Supervisor(port, sandbox_port, host=host, others=others) as supervisor:
            with Stores(read_settings()) as stores:
                key = seed(stores, f"http://127.0.0.1:{sandbox_port}", report=click.echo)
                password = secrets.token_urlsafe(12)
                administrator_setup.create(stores, ADMINISTRATOR, password)
            client = stack.enter_context(_client(key))
            links = _links(client, supervisor.url)
            app = booking.create_app(supervisor.url, key, offer())
            secret = _endpoint(client, supervisor.url, f"http://{booking.HOST}:{booking_port}")
            webhook_receiver.install(app, secret, click.echo)
            feeds = demo_accounts.install(app)
            page = stack.enter_context(booking.serving(app, booking_port, host))
            _connect_others(client, supervisor.url, stack, Path(folder), feeds, f"{page}calendars/")
            _read_once(client, supervisor.url)
            click.echo(_instructions(supervisor.url, page, key, password, links, folder))
            supervisor.wait()
            # A second Ctrl-C must not interrupt the cleanup, after which the process ends.
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _connect_others(
    client: requests.Session,
    url: str,
    stack: ExitStack,
    folder: Path,
    feeds: dict[str, bytes],
    address: str,
) -> None:
    """Connect ``BY_CALDAV`` and ``BY_FEED``, whose feed is then gone; ``address`` is that of the feeds."""
    monday = _monday(datetime.now(UTC).date())
    noah, liv = (demo_accounts.as_text(week_of(each, monday), each.zone) for each in (BY_CALDAV, BY_FEED))
    feeds |= {BY_CALDAV.id: noah, BY_FEED.id: liv}
    forms = {each: {"provider": "ics", "url": f"{address}{each}.ics"} for each in feeds}
    if demo_accounts.has_caldav_server():
        server = demo_accounts.caldav_server(folder, BY_CALDAV.id, noah)
        forms[BY_CALDAV.id] = stack.enter_context(server)
    for name, form in forms.items():
        client.post(f"{url}/v1/users", json={"id": name}, timeout=10).raise_for_status()
        client.post(f"{url}/v1/users/{name}/connections", json=form, timeout=30).raise_for_status()
    del feeds[BY_FEED.id]


def _read_once(client: requests.Session, url: str) -> None:
    """Request the slots of the organization, so that the overview names the members who cannot be read."""
    first = datetime.now(UTC).date()
    query = {"start": first.isoformat(), "end": (first + timedelta(days=1)).isoformat()}
    client.get(f"{url}/v1/organizations/{SLUG}/scheduling", params=query, timeout=30).raise_for_status()


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def seed(stores: Stores, sandbox_url: str, *, report: Report, first: date | None = None) -> str:
    """Create the demo organization, or reset it; returns a new API key bound to it.

    Its calendars begin in the week of ``first``, a day in UTC; by default this week.
    """
    first = first or datetime.now(UTC).date()
    monday = _monday(first)
    sandbox = Sandbox(sandbox_url)
    rooms = sum(person.room for person in PEOPLE)
    report(f"Creating {len(PEOPLE) - rooms} people and {rooms} rooms with their calendars ...")
    accounts = {
        person.id: [_account(sandbox, person, name, monday) for name in person.providers] for person in PEOPLE
    }
    privately = {
        person.id: sandbox.account(
            person.providers[0],
            _address(f"{person.id}.private", person.providers[0]),
            time_zone=person.zone,
            events=_evenings(monday),
        )
        for person in PEOPLE
        if person.private
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
        for name, account in privately.items():
            _connect(session, stores, user_ids[name], account, ReplacedConnection.ADD, label="Private")
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


def _evenings(monday: date) -> Iterator[dict[str, Any]]:
    """The events of a private calendar."""
    for week in range(WEEKS):
        yield _event("Choir", monday + timedelta(days=7 * week + 1), time(19), 120)


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


def _connect(
    session: Session,
    stores: Stores,
    user_id: int,
    account: SandboxAccount,
    replaced: ReplacedConnection = ReplacedConnection.DEFAULT,
    label: str | None = None,
) -> None:
    tokens = Tokens(account.access_token, account.refresh_token, account.expires_at)
    connections.replace(
        session,
        stores.keyring,
        user_id=user_id,
        provider=account.provider,
        email=account.email,
        scope=account.scope.split(),
        tokens=tokens,
        account=replaced,
        label=label,
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


def _client(key: str) -> requests.Session:
    client = requests.Session()
    # Ignore the environment's proxies: the server is on this machine.
    client.trust_env = False
    client.headers["Authorization"] = f"Bearer {key}"
    return client


def _links(client: requests.Session, url: str) -> list[dict[str, str]]:
    """Create the user ``GUEST``; returns the links that connect accounts to it."""
    client.post(f"{url}/v1/users", json={"id": GUEST}, timeout=10).raise_for_status()
    answer = client.get(f"{url}/v1/users/{GUEST}/oauth/links", timeout=10)
    answer.raise_for_status()
    links: list[dict[str, str]] = answer.json()["data"]
    return links


def _endpoint(client: requests.Session, url: str, receiver: str) -> str:
    """Register the receiver of the demo; returns the secret that signs its webhooks."""
    endpoint = {"url": receiver + webhook_receiver.PATH, "events": list(EVENTS)}
    answer = client.post(f"{url}/v1/webhooks", json=endpoint, timeout=10)
    answer.raise_for_status()
    secret: str = answer.json()["data"]["secret"]
    return secret


def _instructions(
    url: str, booking_page: str, key: str, password: str, links: list[dict[str, str]], folder: str
) -> str:
    day = datetime.now(UTC).date() + timedelta(days=1)
    while day.weekday() >= 5:
        day += timedelta(days=1)
    query = f"start={day}T09:00&end={day}T17:00&slotDuration=60&limit=1"
    connect = "\n".join(f"  {each['provider']:<10} {each['link']}\n" for each in links)
    place = "a calendar at a CalDAV server" if demo_accounts.has_caldav_server() else "a calendar feed"
    return f"""
Dashboard     {url}/dashboard
              sign in as {ADMINISTRATOR} with the password {password}
Booking page  {booking_page}
              an example of what can be built; see examples/booking
API           {url}
Documentation {url}/docs
Description   {url}/v1/docs
API key       {key}
              bound to the organization {SLUG}; it cannot manage keys
Commands      {sys.argv[0]} keys create try-out --data {folder}
              without --data, commands reach the installation in .almanac, not this one
Settings      those in the environment do not apply here, but to {sys.argv[0]} up --sandbox

When are Ada and Hana first free for an hour on {day:%A}? Hana has withdrawn access, so the answer names her.

  curl -s -H 'Authorization: Bearer {key}' -H 'X-Timezone: Europe/London' \\
    -H 'Content-Type: application/json' -d '{{"users": [{{"id": "ada"}}, {{"id": "hana"}}]}}' \\
    '{url}/v1/users/scheduling?{query}' \\
    | python3 -m json.tool

Gabriel has two Google accounts. Noah has {place}. The feed of Liv is not found any more, so no
slots are offered for her.

Connect an account to the user "{GUEST}" by browser. Each link works once, within ten minutes;
{url}/v1/users/{GUEST}/oauth/links makes new ones:

{connect}
Webhooks of the demo company are printed below: book a meeting on the booking page.
Ctrl-C ends the demo; nothing is kept.
"""
