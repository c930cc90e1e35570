"""Organizations."""

from __future__ import annotations

from typing import TypedDict, Unpack

from almanac_client.bodies import QuotasBody
from almanac_client.messages import Request, path
from almanac_client.operations import PAGE, Listing, Operation, data, rows
from almanac_client.parameters import value_of
from almanac_client.records import Organization
from almanac_client.resources import Resource, TransportT, listing, operation


class OrganizationChange(TypedDict, total=False):
    """Fields to change in an organization; missing ones stay unchanged, and a name of None is removed."""

    slug: str
    name: str | None
    quotas: QuotasBody


class Organizations(Resource[TransportT]):
    """Workspaces: groups of users."""

    @listing
    def list(self, *, limit: int = PAGE) -> Listing[Organization]:
        """Every organization, in pages of ``limit``.

        >>> [each.slug for each in almanac.organizations.list()]
        """
        return Listing(Request.get("/organizations"), limit, rows(list[Organization]))

    @operation
    def create(
        self,
        slug: str,
        *,
        name: str | None = None,
        quotas: QuotasBody | None = None,
        idempotency_key: str | None = None,
    ) -> Operation[Organization]:
        """Create an organization.

        >>> almanac.organizations.create("acme", name="Acme")
        """
        fields: dict[str, object] = {"slug": slug, "name": name}
        if quotas is not None:
            fields["quotas"] = value_of(quotas)
        request = Request.create("/organizations", fields, idempotency_key=idempotency_key)
        return Operation(request, data(Organization))

    @operation
    def get(self, org_slug: str) -> Operation[Organization]:
        """An organization and its members.

        >>> [member.id for member in almanac.organizations.get("acme").members]
        """
        return Operation(Request.get(path("/organizations/{}", org_slug)), data(Organization))

    @operation
    def change(self, org_slug: str, **changes: Unpack[OrganizationChange]) -> Operation[Organization]:
        """Change the given fields of an organization.

        >>> almanac.organizations.change("acme", slug="acme-inc")
        >>> almanac.organizations.change("acme", quotas={"held_users": 2000})
        """
        # Not ``body``, which leaves a name of None out.
        request = Request("PUT", path("/organizations/{}", org_slug), body=value_of(changes))
        return Operation(request, data(Organization))

    @operation
    def delete(self, org_slug: str) -> Operation[Organization]:
        """Delete an organization; its users remain, and API keys bound to it are revoked.

        >>> almanac.organizations.delete("acme")
        """
        return Operation(Request("DELETE", path("/organizations/{}", org_slug)), data(Organization))
