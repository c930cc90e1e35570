"""Users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from almanac_client.bodies import ProfileBody
from almanac_client.messages import Request, path
from almanac_client.operations import PAGE, Listing, Operation, data, nothing, rows
from almanac_client.parameters import body, matching, query, value_of
from almanac_client.records import Organization, PersonData, Profile, User
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
    def delete(
        self, user_id: str, *, include: Sequence[Relation] = (), revoke: bool = True
    ) -> Operation[User]:
        """Delete a user and the stored data of the user's accounts; returns the deleted user.

        ``revoke`` is that of ``connections.delete``.

        >>> almanac.users.delete("ada")
        """
        options = query(include=include, revoke=revoke)
        return Operation(Request("DELETE", path("/users/{}", user_id), options), data(User))

    @operation
    def export(self, user_id: str) -> Operation[PersonData]:
        """Everything that is stored about a user, without secrets, by kind.

        >>> almanac.users.export("ada").oauth_connections
        """
        return Operation(Request.get(path("/users/{}/export", user_id)), data(PersonData))

    @operation
    def availability(self, user_id: str) -> Operation[Profile]:
        """What counts for a user on every route of scheduling.

        >>> almanac.users.availability("ada").time_zone
        """
        return Operation(Request.get(path("/users/{}/availability", user_id)), data(Profile))

    @operation
    def replace_availability(
        self, user_id: str, *, if_match: str | None = None, **profile: Unpack[ProfileBody]
    ) -> Operation[Profile]:
        """Replace the stored availability of a user; with ``if_match``, only if it still has this ``ETag``.

        >>> almanac.users.replace_availability("ada", time_zone="Asia/Tokyo", schedules=[week])
        """
        where = path("/users/{}/availability", user_id)
        request = Request("PUT", where, {}, value_of(profile), headers=matching(if_match))
        return Operation(request, data(Profile))

    @operation
    def change_availability(
        self, user_id: str, *, if_match: str | None = None, **profile: Unpack[ProfileBody]
    ) -> Operation[Profile]:
        """Change a part of what counts for a user; None makes it not stated any more. ``if_match`` as above.

        >>> almanac.users.change_availability("ada", minimum_notice=120)
        """
        where = path("/users/{}/availability", user_id)
        request = Request("PATCH", where, {}, value_of(profile), headers=matching(if_match))
        return Operation(request, data(Profile))

    @operation
    def delete_availability(self, user_id: str, *, if_match: str | None = None) -> Operation[None]:
        """Forget what counts for a user. ``if_match`` as above.

        >>> almanac.users.delete_availability("ada")
        """
        where = path("/users/{}/availability", user_id)
        return Operation(Request("DELETE", where, headers=matching(if_match)), nothing)

    @listing
    def organizations(self, user_id: str, *, limit: int = PAGE) -> Listing[Organization]:
        """Every organization that a user is a member of.

        >>> [each.slug for each in almanac.users.organizations("ada")]
        """
        request = Request.get(path("/users/{}/organizations", user_id))
        return Listing(request, limit, rows(list[Organization]))
