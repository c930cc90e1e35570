"""Users."""

from __future__ import annotations

from collections.abc import Sequence

from almanac_client.messages import Request, path
from almanac_client.operations import PAGE, Listing, Operation, data, rows
from almanac_client.parameters import body, query
from almanac_client.records import Organization, User
from almanac_client.resources import Resource, TransportT, listing, operation
from almanac_client.words import Relation


class Users(Resource[TransportT]):
    """People whose calendars are read."""

    @listing
    def list(self, *, include: Sequence[Relation] = (), limit: int = PAGE) -> Listing[User]:
        """Every user, in pages of ``limit``, with the ``include`` relations (default: all).

        An organization lists at most 100 members here; ``members_truncated`` marks a truncated list.

        >>> for user in almanac.users.list(include=["oauthConnections"]): print(user.id)
        """
        return Listing(Request.get("/users", query(include=include)), limit, rows(list[User]))

    @operation
    def create(
        self, id: str, *, organization_slugs: Sequence[str] = (), idempotency_key: str | None = None
    ) -> Operation[User]:
        """Create a user, as a member of the given organizations.

        >>> almanac.users.create("ada", organization_slugs=["acme"])
        """
        fields = body(id=id, organization_slugs=organization_slugs)
        return Operation(Request.create("/users", fields, idempotency_key=idempotency_key), data(User))

    @operation
    def get(self, user_id: str, *, include: Sequence[Relation] = ()) -> Operation[User]:
        """A user, with the ``include`` relations (default: all).

        >>> almanac.users.get("ada", include=["oauthConnections"]).oauth_connections
        """
        return Operation(Request.get(path("/users/{}", user_id), query(include=include)), data(User))

    @operation
    def rename(self, user_id: str, new_id: str, *, include: Sequence[Relation] = ()) -> Operation[User]:
        """Change a user's id; connections and memberships stay.

        >>> almanac.users.rename("ada", "ada.lovelace").id
        """
        where, params = path("/users/{}", user_id), query(include=include)
        return Operation(Request("PUT", where, params, body(user_id=new_id)), data(User))

    @operation
    def delete(self, user_id: str, *, include: Sequence[Relation] = ()) -> Operation[User]:
        """Delete a user and the stored data of the user's accounts; returns the deleted user.

        >>> almanac.users.delete("ada")
        """
        return Operation(Request("DELETE", path("/users/{}", user_id), query(include=include)), data(User))

    @listing
    def organizations(self, user_id: str, *, limit: int = PAGE) -> Listing[Organization]:
        """Every organization that a user is a member of.

        >>> [each.slug for each in almanac.users.organizations("ada")]
        """
        request = Request.get(path("/users/{}/organizations", user_id))
        return Listing(request, limit, rows(list[Organization]))
