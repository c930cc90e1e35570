"""Users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from almanac_client.pages import PAGE, rows
from almanac_client.parameters import body, query
from almanac_client.records import Organization, Relation, User
from almanac_client.transport import Transport, path


class Users:
    """People whose calendars are read."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, include: Sequence[Relation] = (), limit: int = PAGE) -> Iterator[User]:
        """Every user, in pages of ``limit``, with the ``include`` relations (default: all).

        An organization lists at most 100 members here; ``membersTruncated`` marks a truncated list.

        >>> for user in almanac.users.list(include=["oauthConnections"]): print(user["id"])
        """
        return rows(self._transport, "/users", query({}, include=include), limit, User)

    def create(
        self, id: str, *, organization_slugs: Sequence[str] = (), idempotency_key: str | None = None
    ) -> User:
        """Create a user, as a member of the given organizations.

        >>> almanac.users.create("ada", organization_slugs=["acme"])
        """
        fields = body(id=id, organization_slugs=list(organization_slugs))
        reply = self._transport.create("/users", fields, idempotency_key=idempotency_key)
        made: User = reply.body["data"]
        return made

    def get(self, user_id: str, *, include: Sequence[Relation] = ()) -> User:
        """A user, with the ``include`` relations (default: all).

        >>> almanac.users.get("ada", include=["oauthConnections"])["oauthConnections"]
        """
        reply = self._transport.get(path("/users/{}", user_id), query({}, include=include))
        found: User = reply.body["data"]
        return found

    def rename(self, user_id: str, new_id: str, *, include: Sequence[Relation] = ()) -> User:
        """Change a user's id; connections and memberships stay.

        >>> almanac.users.rename("ada", "ada.lovelace")["id"]
        """
        fields, params = body(user_id=new_id), query({}, include=include)
        reply = self._transport.send("PUT", path("/users/{}", user_id), query=params, body=fields)
        changed: User = reply.body["data"]
        return changed

    def delete(self, user_id: str, *, include: Sequence[Relation] = ()) -> User:
        """Delete a user and the stored data of the user's accounts; returns the deleted user.

        >>> almanac.users.delete("ada")
        """
        params = query({}, include=include)
        reply = self._transport.send("DELETE", path("/users/{}", user_id), query=params)
        deleted: User = reply.body["data"]
        return deleted

    def organizations(self, user_id: str, *, limit: int = PAGE) -> Iterator[Organization]:
        """Every organization that a user is a member of.

        >>> [each["slug"] for each in almanac.users.organizations("ada")]
        """
        return rows(self._transport, path("/users/{}/organizations", user_id), {}, limit, Organization)
