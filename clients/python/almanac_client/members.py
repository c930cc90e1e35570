"""Members of organizations."""

from __future__ import annotations

from collections.abc import Sequence

from almanac_client.messages import Request, path
from almanac_client.operations import PAGE, Listing, Operation, nothing, rows, whole
from almanac_client.parameters import body, query
from almanac_client.records import AddedMembersAnswer, RemovedMembersAnswer, User
from almanac_client.resources import Resource, TransportT, listing, operation
from almanac_client.words import Relation


class Members(Resource[TransportT]):
    """The members of an organization."""

    @listing
    def list(self, org_slug: str, *, include: Sequence[Relation] = (), limit: int = PAGE) -> Listing[User]:
        """Every member, in pages of ``limit``, with the ``include`` relations (default: all).

        The ``organizations`` relation lists at most 100 members; ``members_truncated`` marks a truncated
        list.

        >>> [member.id for member in almanac.members.list("acme")]
        """
        request = Request.get(path("/organizations/{}/members", org_slug), query(include=include))
        return Listing(request, limit, rows(list[User]))

    @operation
    def add(
        self, org_slug: str, user_ids: Sequence[str], *, idempotency_key: str | None = None
    ) -> Operation[AddedMembersAnswer]:
        """Add users as members; with an unknown user, none is added.

        >>> almanac.members.add("acme", ["ada", "grace"]).already_members
        """
        where, fields = path("/organizations/{}/members", org_slug), body(user_ids=user_ids)
        request = Request.create(where, fields, idempotency_key=idempotency_key)
        return Operation(request, whole(AddedMembersAnswer))

    @operation
    def remove_one(self, org_slug: str, user_id: str) -> Operation[None]:
        """Remove one member; the user remains a user.

        >>> almanac.members.remove_one("acme", "grace")
        """
        return Operation(Request("DELETE", path("/organizations/{}/members/{}", org_slug, user_id)), nothing)

    @operation
    def remove(self, org_slug: str, user_ids: Sequence[str]) -> Operation[RemovedMembersAnswer]:
        """Remove users from the organization; they remain users.

        >>> almanac.members.remove("acme", ["grace"]).not_members
        """
        where, fields = path("/organizations/{}/members", org_slug), body(user_ids=user_ids)
        return Operation(Request("DELETE", where, body=fields), whole(RemovedMembersAnswer))
