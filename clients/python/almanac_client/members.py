"""Members of organizations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from almanac_client.asking import body, query
from almanac_client.pages import PAGE, rows
from almanac_client.records import Relation, User
from almanac_client.transport import Transport, path


class Members:
    """Who belongs to an organization."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, org_slug: str, *, include: Sequence[Relation] = (), limit: int = PAGE) -> Iterator[User]:
        """Every member, in pages of ``limit``, with these relations; with all of them unless some are named.

        An organization holds at most 100 members here and says so by ``membersTruncated``.

        >>> [member["id"] for member in almanac.members.list("acme")]
        """
        asked = query({}, include=include)
        return rows(self._transport, path("/organizations/{}/members", org_slug), asked, limit, User)

    def add(self, org_slug: str, user_ids: Sequence[str], *, idempotency_key: str | None = None) -> str:
        """Make users members; an unknown one adds nobody. Returns a sentence that says what was done.

        >>> almanac.members.add("acme", ["ada", "grace"])
        """
        reply = self._transport.create(
            path("/organizations/{}/members", org_slug),
            body(user_ids=list(user_ids)),
            idempotency_key=idempotency_key,
        )
        return str(reply.body["data"])

    def remove(self, org_slug: str, user_ids: Sequence[str]) -> str:
        """Take users out of the organization; they stay users. Returns a sentence that says what was done.

        >>> almanac.members.remove("acme", ["grace"])
        """
        fields = body(user_ids=list(user_ids))
        reply = self._transport.send("DELETE", path("/organizations/{}/members", org_slug), body=fields)
        return str(reply.body["data"])
