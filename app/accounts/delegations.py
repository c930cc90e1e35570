"""Delegated connections: members of an organization who are read by its grant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.accounts import organization_grants as grants
from app.accounts.ownership import CONNECTION, own_user
from app.http.errors import Conflict, Forbidden, Invalid, NotFound
from app.schemas.error_codes import Code
from providers import registry
from store.sql.models import OAuthConnection
from store.sql.queries import audit, organization_grants, organizations, users
from store.sql.queries.api_keys import Caller
from store.sql.queries.connections import RemovedConnection
from store.sql.queries.organization_grants import Delegations, GrantSummary


class ImportedMember(NamedTuple):
    """A member to import: the user's identifier, and the address of the mailbox."""

    user_id: str
    email: str


class ImportResult(NamedTuple):
    """The users of an import, in its order, and the connections that were replaced."""

    created: list[str]
    changed: list[str]
    unchanged: list[str]
    replaced: list[RemovedConnection]


class ImportPreview(NamedTuple):
    """The users of an import, by the change that it would make.

    ``personal`` are those of ``changed`` with a connection by their own consent, which would be replaced.
    """

    created: list[str]
    changed: list[str]
    unchanged: list[str]
    personal: list[str]


def connect(
    session: Session,
    caller: Caller,
    slug: str,
    provider: str,
    custom_id: str,
    email: str,
    *,
    adds: bool = False,
) -> tuple[OAuthConnection, Delegations]:
    """Give a member of an organization a delegated connection; returns it, and what has changed.

    ``adds``: beside the connections that the user has, unless one is for this address by the same grant.

    :raise ApiError: for a user or an organization that the caller does not reach, a user who is no member, an
        organization without a grant, and an address outside its domain
    """
    user = own_user(session, caller, custom_id, otherwise=CONNECTION)
    grant = grants.find(session, caller, slug, provider, keep=True)
    number = organizations.ids(session, [slug], organization_id=caller.organization_id)[slug]
    if number not in users.organization_ids(session, user.id):
        raise NotFound(f"User is not a member of {slug}", Code.MEMBER_NOT_FOUND)
    _require_domain(grant, email, "email")
    done = organization_grants.delegate(session, grant, {user.id: email}, adds=adds)
    row = organization_grants.find_delegated(session, user.id, grant.id, email)
    if not done.unchanged:
        action = "replaceConnection" if done.replaced else "storeConnection"
        audit.record(session, actor=caller.visible, action=action, subject=f"{custom_id}/{provider}")
    return row, done


def import_members(
    session: Session,
    caller: Caller,
    slug: str,
    provider: str,
    members: Sequence[ImportedMember],
    *,
    adds: bool = False,
) -> ImportResult:
    """Make users, memberships and delegated connections, as far as they are missing.

    ``adds`` as in ``connect``.
    The number of SQL statements does not depend on the number of members. A repeated import changes nothing.

    :raise ApiError: for the first member that cannot be imported; then the caller rolls everything back
    """
    _require_distinct(members)
    grant = grants.find(session, caller, slug, provider, keep=True)
    number = organizations.ids(session, [slug], organization_id=caller.organization_id)[slug]
    for index, member in enumerate(members):
        _require_domain(grant, member.email, f"members.{index}.email")
    numbers, new = users.add_missing(session, [each.user_id for each in members])
    if caller.organization_id is not None:
        _require_own(session, number, members, numbers, new)
    joined = organizations.add_members(session, number, numbers.values())
    emails = {numbers[each.user_id]: each.email for each in members}
    done = organization_grants.delegate(session, grant, emails, adds=adds)
    changed = done.changed | (done.unchanged & joined)
    if done.created or changed:
        subject = f"{slug}/{provider}: {len(done.created)} created, {len(changed)} changed"
        audit.record(session, actor=caller.visible, action="importMembers", subject=subject)

    def named(those: Iterable[int]) -> list[str]:
        chosen = set(those)
        return [each.user_id for each in members if numbers[each.user_id] in chosen]

    return ImportResult(named(done.created), named(changed), named(done.unchanged - joined), done.replaced)


def preview_import(
    session: Session, caller: Caller, slug: str, provider: str, members: Sequence[ImportedMember]
) -> ImportPreview:
    """The changes that ``import_members`` would make for valid members; nothing is written.

    :raise NotFound: for an organization that the caller does not reach, or one without a grant
    """
    grant = grants.find(session, caller, slug, provider)
    number = organizations.ids(session, [slug], organization_id=caller.organization_id)[slug]
    numbers = users.ids(session, [each.user_id for each in members], organization_id=None)
    before = organization_grants.existing_connections(session, provider, numbers.values())
    memberships = organizations.of_users(session, numbers.values())
    preview = ImportPreview([], [], [], [])
    for user_id, email in members:
        user = numbers.get(user_id)
        old = None
        if user is not None:
            old = organization_grants.to_replace(before.get(user, ()), grant.id, email)
        if user is None or old is None:
            preview.created.append(user_id)
        elif old.delegates(grant.id, email) and number in memberships.get(user, set()):
            preview.unchanged.append(user_id)
        else:
            preview.changed.append(user_id)
            if old.grant_id is None:
                preview.personal.append(user_id)
    return preview


def required_domain(grant: GrantSummary) -> str | None:
    """The domain that members' addresses must be in; None where the grant confines them."""
    if grant.subject is None or not registry.impersonates(grant.provider):
        return None
    return grants.domain_of(grant.subject)


def _require_distinct(members: Sequence[ImportedMember]) -> None:
    """Reject an import that names a user or an address twice; addresses are compared without case."""
    user_ids: dict[str, int] = {}
    emails: dict[str, int] = {}
    for index, member in enumerate(members):
        earlier = user_ids.setdefault(member.user_id, index)
        if earlier != index:
            raise _twice(index, "userId", f"the user of members[{earlier}]")
        earlier = emails.setdefault(member.email.lower(), index)
        if earlier != index:
            raise _twice(index, "email", f"the address of members[{earlier}]")


def _twice(index: int, field: str, what: str) -> Invalid:
    return Invalid(f"members[{index}].{field} is {what} too", param=f"members.{index}.{field}")


def _require_domain(grant: GrantSummary, email: str, param: str) -> None:
    """Reject an address outside the domain of a Google grant. Microsoft's tenants have no other mailboxes."""
    domain = required_domain(grant)
    if domain is not None and grants.domain_of(email) != domain:
        spelled = param.replace("members.", "members[").replace(".email", "].email")
        raise Invalid(f"{spelled} must be an address in {domain}, the domain of the grant", param=param)


def _require_own(
    session: Session,
    organization: int,
    members: Sequence[ImportedMember],
    numbers: dict[str, int],
    new: set[int],
) -> None:
    """Reject users outside the organization, to whose key they do not exist, and users shared with others."""
    memberships = organizations.of_users(session, numbers.values())
    for index, member in enumerate(members):
        number = numbers[member.user_id]
        theirs = memberships.get(number, set())
        param = f"members.{index}.userId"
        if number not in new and organization not in theirs:
            raise Conflict(f"members[{index}].userId: User already exists", Code.USER_EXISTS, param=param)
        if theirs - {organization}:
            raise Forbidden(
                f"members[{index}].userId: The user belongs to other organizations too; {CONNECTION}",
                Code.USER_IN_OTHER_ORGANIZATIONS,
                param=param,
            )
