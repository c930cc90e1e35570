"""Organizations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict, Unpack

from almanac_client.pages import PAGE, rows
from almanac_client.records import Organization
from almanac_client.transport import Transport, path


class OrganizationChange(TypedDict, total=False):
    """Fields to change in an organization; missing ones stay unchanged, and a name of None is removed."""

    slug: str
    name: str | None


class Organizations:
    """Workspaces: groups of users."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, limit: int = PAGE) -> Iterator[Organization]:
        """Every organization, in pages of ``limit``.

        >>> [each["slug"] for each in almanac.organizations.list()]
        """
        return rows(self._transport, "/organizations", {}, limit, Organization)

    def create(
        self, slug: str, *, name: str | None = None, idempotency_key: str | None = None
    ) -> Organization:
        """Create an organization.

        >>> almanac.organizations.create("acme", name="Acme")
        """
        fields = {"slug": slug, "name": name}
        reply = self._transport.create("/organizations", fields, idempotency_key=idempotency_key)
        made: Organization = reply.body["data"]
        return made

    def get(self, org_slug: str) -> Organization:
        """An organization and its members.

        >>> [member["id"] for member in almanac.organizations.get("acme")["members"]]
        """
        found: Organization = self._transport.get(path("/organizations/{}", org_slug)).body["data"]
        return found

    def change(self, org_slug: str, **changes: Unpack[OrganizationChange]) -> Organization:
        """Change the given fields of an organization.

        >>> almanac.organizations.change("acme", slug="acme-inc")
        """
        reply = self._transport.send("PUT", path("/organizations/{}", org_slug), body=dict(changes))
        changed: Organization = reply.body["data"]
        return changed

    def delete(self, org_slug: str) -> Organization:
        """Delete an organization; its users remain, and API keys bound to it are revoked.

        >>> almanac.organizations.delete("acme")
        """
        reply = self._transport.send("DELETE", path("/organizations/{}", org_slug))
        deleted: Organization = reply.body["data"]
        return deleted
