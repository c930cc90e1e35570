"""Members of organizations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from almanac_client.pages import PAGE, rows
from almanac_client.parameters import body, query
from almanac_client.records import Relation, User
from almanac_client.transport import Transport, path


class Members:
    """The members of an organization."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, org_slug: str, *, include: Sequence[Relation] = (), limit: int = PAGE) -> Iterator[User]:
        """Every member, in pages of ``limit``, with the ``include`` relations (default: all).

        The ``organizations`` relation lists at most 100 members; ``membersTruncated`` marks a truncated list.

        >>> [member["id"] for member in almanac.members.list("acme")]
        """
        params = query({}, include=include)
        return rows(self._transport, path("/organizations/{}/members", org_slug), params, limit, User)

    def add(self, org_slug: str, user_ids: Sequence[str], *, idempotency_key: str | None = None) -> str:
        """Add users as members; with an unknown user, none is added. Returns a sentence with the result.

        >>> almanac.members.add("acme", ["ada", "grace"])
        """
        reply = self._transport.create(
            path("/organizations/{}/members", org_slug),
            body(user_ids=list(user_ids)),
            idempotency_key=idempotency_key,
        )
        return str(reply.body["data"])

    def remove(self, org_slug: str, user_ids: Sequence[str]) -> str:
        """Remove users from the organization; they remain users. Returns a sentence with the result.

        >>> almanac.members.remove("acme", ["grace"])
        """
        fields = body(user_ids=list(user_ids))
        reply = self._transport.send("DELETE", path("/organizations/{}/members", org_slug), body=fields)
        return str(reply.body["data"])
