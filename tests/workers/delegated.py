"""Organizations of tests whose members are read by a grant: domains of the sandbox, stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from providers.sandbox.client import SandboxDomain
from providers.timestamps import DAY, instant
from store.sql.models import Organization
from store.sql.queries import organization_grants
from store.sql.queries.organization_grants import NewGrant
from tests import people
from workers.jobs import GrantRef, ReadBusy, Reply
from workers.runtime import Runtime

START = instant("2026-12-03T00:00:00Z")
END = START + DAY
MEETING = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
NINE, TEN = instant(MEETING["start"]), instant(MEETING["end"])
SCOPES = {
    "google": ["https://www.googleapis.com/auth/calendar"],
    "microsoft": ["Calendars.ReadWrite", "MailboxSettings.Read"],
}


@dataclass(frozen=True)
class Delegated:
    """A stored grant, and the delegated connection of each address."""

    grant: GrantRef
    connections: Mapping[str, str]

    def job(self, address: str, start: int = START, end: int = END) -> ReadBusy:
        """The read of a member's main calendar."""
        return ReadBusy(self.connections[address], ("primary",), start, end, self.grant)

    def jobs(self, addresses: Sequence[str] = ()) -> list[ReadBusy]:
        """The reads of these members, by default of all."""
        return [self.job(each) for each in addresses or self.connections]


def members(count: int, domain: str, **more: Any) -> list[dict[str, Any]]:
    """The description of some members of a domain, each with a meeting."""
    return [{"email": f"m{n}@{domain}", "events": [MEETING], **more} for n in range(count)]


def new_grant(domain: SandboxDomain, **changed: Any) -> NewGrant:
    """The grant of a domain of the sandbox, to be stored."""
    google = domain.provider == "google"
    key = domain.service_account_key
    fields = {
        "provider": domain.provider,
        "subject": domain.subject if google else None,
        "client_email": key["client_email"] if google else None,
        "tenant": None if google else domain.tenant,
        "client_id": None if google else domain.client_id,
        "secret": json.dumps(key) if google else domain.client_secret,
        "scope": SCOPES[domain.provider],
    }
    return NewGrant(**(fields | changed))


def delegate(
    runtime: Runtime, domain: SandboxDomain, addresses: Sequence[str], organization: str, **changed: Any
) -> Delegated:
    """Store the grant of a domain for a new organization, and a connection for each address."""
    keyring = runtime.stores.keyring
    with runtime.stores.database.writing() as session:
        row = Organization(slug=organization, name=organization)
        session.add(row)
        session.flush()
        grant = organization_grants.save(session, keyring, row.id, new_grant(domain, **changed))
        users = {people.add_user(session, f"{organization}-{each}").id: each for each in addresses}
        organization_grants.delegate(session, grant, users)
        rows = organization_grants.existing_connections(session, domain.provider, users)
        connections = {users[user]: standing[0].id for user, standing in rows.items()}
    ordered = {each: connections[each] for each in addresses}
    return Delegated(GrantRef(grant.id, domain.provider), ordered)


def periods(reply: Reply) -> list[tuple[int, int]]:
    """The busy periods of a member that was read."""
    assert reply.failed is None, reply.failed
    return reply.outcomes["primary"].busy.pairs()  # type: ignore[union-attr]


def failure(reply: Reply) -> Any:
    """The failure of a member that was not read."""
    return reply.failed or reply.outcomes["primary"]
