"""Domains with a grant for the whole organization: ``/sandbox/domains``.

``POST`` makes a domain, its members and one authorized application, a service account at Google::

    {"provider", "domain", "members": [account, …], "sharing"?: "domain" or "none", "scope"?, "subject"?,
     "bulk"?: {…}, "rooms"?: [room, …], "clientId"?, "clientSecret"?, "certificate"?, "secretExpired"?}

- A member is described as an account is, without its provider. Every account of the provider whose address is
  in the domain is a member, also one that was created before or is created later by itself.
- ``sharing`` says whether members may read each other's free/busy at Google, by default that they may.
- ``scope`` is what the administrator has authorized: scopes at Google, application permissions at Microsoft.
- ``subject`` is the account that free/busy is read as (Google). By default it is the first member who is not
  suspended, or a new ``admin@`` account in a domain without members.
- ``bulk`` makes members with meetings, as ``/sandbox/accounts/bulk`` does, before those of ``members``.
- ``rooms`` are listed by the directory: ``{"email", "name"?, "building"?, "capacity"?, "category"?}``. At
  Microsoft each is a mailbox of the domain. The directory needs scopes that are not authorized by default:
  ``admin.directory.user.readonly`` and ``admin.directory.resource.calendar.readonly`` at Google, and
  ``User.Read.All`` and ``Place.Read.All`` at Microsoft.
- ``clientId`` and ``clientSecret`` (Microsoft) are chosen at random by default. ``certificate`` (PEM) is the
  one that this client may sign assertions with, also for the consents of users.

Each member may have a state:

- ``"suspended": true``: Google issues no tokens for it (``invalid_grant``) and reports its calendar as
  ``notFound``; Graph answers ``MailboxNotEnabledForRESTAPI``;
- ``"excluded": true``: an access policy keeps Microsoft's application out (403 ``ErrorAccessDenied``);
- ``"administrator": true``: the account may read Google's directory. The subject may, unless it is false;
- ``"guest": true``: Microsoft's directory shows it as one;
- ``"sharing": "none"``: colleagues read ``notFound`` at Google. ``"domain"`` is the opposite.

``PATCH /sandbox/domains/{domain}`` changes ``sharing``, ``scope``, ``secretExpired``, ``withdrawn``, and the
states of the ``members`` it names by ``email``; 204. ``DELETE`` withdraws the grant, as ``"withdrawn": true``
does: the application gets no tokens (``unauthorized_client``), and those it has are answered with 401. Both
change the domain at both providers, unless the query names a ``provider``.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping
from typing import Any

from joserfc.jwk import RSAKey

from providers.sandbox import bulk
from providers.sandbox.accounts import Account, Domain, Room, Sharing, shown_name
from providers.sandbox.google import service_accounts
from providers.sandbox.microsoft import applications
from providers.sandbox.seeds import ACCOUNT, Undescribed, account, provider, read, scopes, text
from providers.sandbox.world import World

MEMBER_STATE = {
    **dict.fromkeys(("suspended", "excluded", "administrator", "guest"), bool),
    "sharing": str,
}
MEMBER = {**ACCOUNT, **MEMBER_STATE}
CHANGE = {
    **dict.fromkeys(("secretExpired", "withdrawn"), bool),
    "sharing": str,
    "members": [{"email": str, **MEMBER_STATE}],
}
ROOM = {**dict.fromkeys(("email", "name", "building", "category"), str), "capacity": int}
DOMAIN = {
    **CHANGE,
    **dict.fromkeys(("provider", "domain", "subject", "clientId", "clientSecret", "certificate"), str),
    "members": [MEMBER],
    "bulk": bulk.BULK,
    "rooms": [ROOM],
}
KEY_SIZE = 2048


class UnknownDomain(Exception):
    """There is no domain of this name."""


def create(world: World, spec: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Create a domain, or replace it; the answer has the application's credentials.

    :raise Undescribed: if the description is incomplete or contradictory
    """
    read(spec, DOMAIN)
    domain = described(spec)
    subject = spec.get("subject") or ""
    if subject and not subject.lower().endswith(f"@{domain.name}"):
        raise Undescribed(f"subject: {subject} is not in {domain.name}")
    for member in posted_members(world, domain, spec):
        world.add(member)
    add_rooms(world, domain, spec)
    if domain.provider == "google":
        subject = with_subject(world, domain, subject)
    apply(world, domain, {name: spec[name] for name in ("secretExpired", "withdrawn") if name in spec})
    replaced = world.domains.get((domain.provider, domain.name))
    if replaced is not None:
        replaced.withdrawn = True
    world.domains[domain.provider, domain.name] = domain
    if certificate := spec.get("certificate"):
        world.certificates[domain.client_id] = certificate
    answer: dict[str, Any] = {"provider": domain.provider, "domain": domain.name}
    if domain.provider == "google":
        answer |= {"subject": subject, "serviceAccountKey": service_accounts.key_file(domain, origin)}
    else:
        answer |= {"tenant": domain.tenant, "clientId": domain.client_id, "clientSecret": domain.secret}
    return answer | {"members": [{"email": member.email} for member in world.members(domain)]}


def described(spec: Mapping[str, Any]) -> Domain:
    """The domain without its members, with new credentials."""
    of, name = provider(spec), text(spec, "domain").lower()
    shared = sharing(spec.get("sharing") or "domain")
    if of == "google":
        project = name.replace(".", "-")
        return Domain(
            of,
            name,
            service_accounts.SCOPES if spec.get("scope") is None else scopes(of, spec["scope"]),
            client_id=str(secrets.randbelow(9 * 10**20) + 10**20),
            application=Account(of, f"almanac@{project}.iam.gserviceaccount.com", "UTC"),
            sharing=shared,
            key=RSAKey.generate_key(KEY_SIZE, private=True),
        )
    client_id = spec.get("clientId") or str(uuid.uuid4())
    return Domain(
        of,
        name,
        applications.ROLES if spec.get("scope") is None else scopes(of, spec["scope"]),
        client_id,
        application=Account(of, f"{client_id}@{name}", "UTC"),
        sharing=shared,
        tenant=str(uuid.uuid4()),
        secret=spec.get("clientSecret") or secrets.token_urlsafe(30),
    )


def posted_members(world: World, domain: Domain, spec: Mapping[str, Any]) -> list[Account]:
    """The accounts of the description, those of ``bulk`` first."""
    made = bulk.accounts({**spec["bulk"], "provider": domain.provider}) if spec.get("bulk") else []
    for entry in spec.get("members") or ():
        member = account(world, {**entry, "provider": domain.provider})
        set_state(member, entry)
        made.append(member)
    for member in made:
        if not domain.has(member):
            raise Undescribed(f"members: {member.email} is not in {domain.name}")
    return made


def add_rooms(world: World, domain: Domain, spec: Mapping[str, Any]) -> None:
    """The rooms of the description, at Microsoft with a mailbox each."""
    rooms = []
    for entry in spec.get("rooms") or ():
        email = text(entry, "email")
        room = account(world, {"provider": domain.provider, "email": email})
        if domain.provider == "microsoft" and not domain.has(room):
            raise Undescribed(f"rooms: {email} is not in {domain.name}")
        if domain.provider == "microsoft" and world.account("microsoft", email) is None:
            world.add(room)
        rooms.append(
            Room(
                str(uuid.uuid5(uuid.NAMESPACE_URL, f"room:{email.lower()}")),
                email,
                entry.get("name") or shown_name(email),
                entry.get("building") or "",
                entry.get("capacity") or 0,
                entry.get("category") or "CONFERENCE_ROOM",
            )
        )
    domain.rooms = tuple(rooms)


def with_subject(world: World, domain: Domain, email: str) -> str:
    """The address that free/busy is read as; creates the account if it is missing."""
    if not email:
        known = [member for member in world.members(domain) if not member.suspended]
        email = known[0].email if known else f"admin@{domain.name}"
    if world.account("google", email) is None:
        world.add(account(world, {"provider": "google", "email": email}))
    subject = world.account("google", email)
    if subject is not None and subject.administrator is None:
        subject.administrator = True
    return email


def change(world: World, name: str, spec: Mapping[str, Any], only: str = "") -> None:
    """Change the domain of a name, at one provider or at both.

    :raise UnknownDomain: if there is none
    :raise Undescribed: if the change is invalid
    """
    read(spec, CHANGE)
    found = [d for d in world.domains.values() if d.name == name.lower() and only in ("", d.provider)]
    if not found:
        raise UnknownDomain(f"No domain {name}")
    for entry in spec.get("members") or ():
        email = text(entry, "email")
        if not any(world.account(domain.provider, email) for domain in found):
            raise Undescribed(f"members: no account {email}")
    for domain in found:
        apply(world, domain, spec)


def apply(world: World, domain: Domain, spec: Mapping[str, Any]) -> None:
    """Apply the fields of a change that are given."""
    if spec.get("sharing") is not None:
        domain.sharing = sharing(spec["sharing"])
    if spec.get("scope") is not None:
        domain.scopes = scopes(domain.provider, spec["scope"])
    if spec.get("withdrawn") is not None:
        domain.withdrawn = spec["withdrawn"]
    if spec.get("secretExpired") is not None:
        domain.secret_expired = spec["secretExpired"]
    for entry in spec.get("members") or ():
        if (member := world.account(domain.provider, entry["email"])) is not None:
            set_state(member, entry)


def set_state(member: Account, entry: Mapping[str, Any]) -> None:
    """Set the states of a member that are given."""
    if entry.get("suspended") is not None:
        member.suspended = entry["suspended"]
    if entry.get("excluded") is not None:
        member.excluded = entry["excluded"]
    if entry.get("administrator") is not None:
        member.administrator = entry["administrator"]
    if entry.get("guest") is not None:
        member.guest = entry["guest"]
    if entry.get("sharing") is not None:
        member.sharing = sharing(entry["sharing"])


def sharing(word: str) -> Sharing:
    match word:
        case "domain" | "none":
            return word
    raise Undescribed("sharing is domain or none")
