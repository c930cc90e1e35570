"""Imports the entries of a directory as members of an organization. It never removes anybody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.accounts import delegations, directory, organizations
from app.accounts import organization_grants as grants
from app.accounts.delegations import ImportedMember
from app.accounts.disconnect import clean_up
from app.schemas.fields import USER_ID
from app.schemas.organization_grants import MAX_IMPORTED
from app.services import services
from providers.directory import KINDS, Entry, Kind
from store.sql.queries import organization_grants, users
from store.sql.queries import organizations as organization_queries
from store.sql.queries.api_keys import Caller

# Seconds that a worker may take: a directory of 20 000 people has 40 pages at Google.
LONGEST = 300.0


class RefusedEntry(NamedTuple):
    """An entry that cannot be a member, and why."""

    entry: Entry
    because: str


class NewMember(NamedTuple):
    """An entry that the grant does not read yet, and the user whom it will read under its address."""

    entry: Entry
    user_id: str


class Plan(NamedTuple):
    """The changes of an import. ``known`` are read by the grant already, under whatever user id.

    ``personal`` are user ids of ``new`` with a connection by their own consent, which is replaced. ``gone``
    are the members whose addresses are not in the directory; None if only a part of it was read.
    """

    new: list[NewMember]
    known: list[Entry]
    refused: list[RefusedEntry]
    personal: set[str]
    gone: list[ImportedMember] | None
    more: bool


def plan(caller: Caller, slug: str, provider: str, kind: Kind | None, part: str) -> Plan:
    """Read the directory, and compare it with the members; nothing is changed.

    Do not call this within a transaction, because it waits for a worker.

    :raise ApiError: without a grant, and when the directory cannot be read
    """
    kinds = KINDS if kind is None else (kind,)
    found = directory.listed(caller, slug, provider, kinds, part, seconds=LONGEST)
    with services().stores.database.reading() as session:
        grant = grants.find(session, caller, slug, provider)
        members = organization_grants.members_by_address(session, grant.id)
        domain = delegations.required_domain(grant)
        known = [each.entry for each in found.entries if each.user_id is not None]
        entries, refused = _sorted_out([e.entry for e in found.entries if e.user_id is None], domain)
        number = organizations.number(session, caller, slug)
        connected = organization_grants.personal_addresses(session, number, provider)
        new, of_others = _without_users_of_others(
            session, _with_users(entries, connected, delegated=set(members.values())), number
        )
        refused += of_others
        wanted = [_member(each) for each in new]
        personal = delegations.preview_import(session, caller, slug, provider, wanted).personal
    gone = None
    if kind is None and not part and not found.more:
        listed = {each.entry.email.lower() for each in found.entries}
        missing = (ImportedMember(user, email) for email, user in members.items() if email not in listed)
        gone = sorted(missing)
    return Plan(new, known, refused, set(personal), gone, found.more)


def carry_out(caller: Caller, slug: str, provider: str, new: Sequence[NewMember]) -> Iterator[int]:
    """Import the entries, each batch in a transaction of its own; yields the number of each batch.

    A batch is imported before its number is read, and the next one after it. A repeated import continues
    where this one has stopped.

    :raise ApiError: for a member that cannot be imported, and then no one of the batch is
    """
    for first in range(0, len(new), MAX_IMPORTED):
        batch = [_member(each) for each in new[first : first + MAX_IMPORTED]]
        with services().stores.database.writing() as session:
            done = delegations.import_members(session, caller, slug, provider, batch)
        clean_up(done.replaced)
        yield len(batch)


def _member(new: NewMember) -> ImportedMember:
    return ImportedMember(new.user_id, new.entry.email)


def _with_users(
    entries: Sequence[Entry], connected: Sequence[tuple[str, str]], delegated: Set[str]
) -> list[NewMember]:
    """Each entry with its user: the member who is connected with its address, else the id of the directory.

    The id is the user id of new members, because an address may change, and be given to another person.
    ``connected`` are the addresses and users of the members' personal connections. Users whom the grant reads
    already (``delegated``) keep that address, and no two entries have one user.
    """
    user_ids = {each.email.lower(): each.id for each in entries}
    taken = {*user_ids.values(), *delegated}
    waiting = {email for email, user_id in user_ids.items() if user_id not in delegated}
    for email, user_id in connected:
        if email in waiting and (user_id not in taken or user_id == user_ids[email]):
            waiting.remove(email)
            taken.add(user_id)
            user_ids[email] = user_id
    return [NewMember(each, user_ids[each.email.lower()]) for each in entries]


def _without_users_of_others(
    session: Session, wanted: Sequence[NewMember], number: int
) -> tuple[list[NewMember], list[RefusedEntry]]:
    """The new members without those whose users are members of other organizations, and these.

    A directory gives each person one id. Two organizations that import one domain would share the user, and
    each would read and write all calendars of the person.
    """
    known = users.ids(session, [each.user_id for each in wanted], organization_id=None)
    memberships = organization_queries.of_users(session, known.values())
    others = {name for name, user in known.items() if memberships.get(user, set()) - {number}}
    because = "the user of this id is a member of another organization; import it under an id of your own"
    return (
        [each for each in wanted if each.user_id not in others],
        [RefusedEntry(each.entry, because) for each in wanted if each.user_id in others],
    )


def _sorted_out(entries: Sequence[Entry], domain: str | None) -> tuple[list[Entry], list[RefusedEntry]]:
    new: list[Entry] = []
    refused: list[RefusedEntry] = []
    ids: set[str] = set()
    addresses: set[str] = set()
    for entry in entries:
        if domain is not None and grants.domain_of(entry.email) != domain:
            refused.append(RefusedEntry(entry, f"the address is outside {domain}, the domain of the grant"))
        elif not USER_ID.fullmatch(entry.id):
            refused.append(RefusedEntry(entry, "the id of the directory is no user id"))
        elif entry.id in ids or entry.email.lower() in addresses:
            refused.append(RefusedEntry(entry, "the directory has another entry with this id or address"))
        else:
            new.append(entry)
            ids.add(entry.id)
            addresses.add(entry.email.lower())
    return new, refused
