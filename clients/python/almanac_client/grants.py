"""Grants of whole organizations, and the members who are read by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from almanac_client.bodies import MemberImport
from almanac_client.messages import Request, path
from almanac_client.operations import Operation, data, nothing, whole
from almanac_client.parameters import body, query
from almanac_client.records import DirectoryAnswer, Grant, ImportedMembers
from almanac_client.resources import Resource, TransportT, operation
from almanac_client.words import AccessLevel, ConsentProvider, DirectoryKind

# Below, ``list`` is the method.
GrantList = list[Grant]


class Grants(Resource[TransportT]):
    """What administrators have granted for whole organizations."""

    @operation
    def list(self, org_slug: str) -> Operation[GrantList]:
        """The grants of an organization, at most one of each provider.

        >>> [each.provider for each in almanac.grants.list("acme") if each.alive]
        """
        return Operation(Request.get(path("/organizations/{}/grants", org_slug)), data(GrantList))

    @operation
    def store_google(
        self,
        org_slug: str,
        *,
        service_account_key: dict[str, Any],
        subject: str,
        scope: AccessLevel | Sequence[str] | None = None,
    ) -> Operation[Grant]:
        """Store a service account with domain-wide delegation, by its JSON key file.

        Google has to accept it. Free/busy is read as the account ``subject``. Without ``scope`` it is
        ``write``.

        >>> almanac.grants.store_google("acme", service_account_key=key, subject="admin@acme.example")
        """
        # The names in the key file are Google's.
        fields = {"serviceAccountKey": service_account_key, **body(subject=subject, scope=scope)}
        where = path("/organizations/{}/grants/google", org_slug)
        return Operation(Request("PUT", where, body=fields), data(Grant))

    @operation
    def store_microsoft(
        self,
        org_slug: str,
        *,
        tenant: str,
        client_id: str | None = None,
        client_secret: str | None = None,
        certificate: str | None = None,
        thumbprint: str | None = None,
    ) -> Operation[Grant]:
        """Store an application that has permissions in a tenant; by default the installation's registration.

        ``certificate`` is a certificate with its private key as PEM, in place of a ``client_secret``.

        >>> almanac.grants.store_microsoft("acme", tenant=tenant, client_id=app, client_secret=secret)
        """
        fields = body(
            tenant=tenant,
            client_id=client_id,
            client_secret=client_secret,
            certificate=certificate,
            thumbprint=thumbprint,
        )
        where = path("/organizations/{}/grants/microsoft", org_slug)
        return Operation(Request("PUT", where, body=fields), data(Grant))

    @operation
    def get(self, org_slug: str, provider: ConsentProvider) -> Operation[Grant]:
        """The grant of an organization with a provider.

        >>> almanac.grants.get("acme", "google").alive
        """
        return Operation(Request.get(_path(org_slug, provider)), data(Grant))

    @operation
    def delete(self, org_slug: str, provider: ConsentProvider) -> Operation[None]:
        """Delete a grant with its delegated connections; nothing is revoked at the provider.

        >>> almanac.grants.delete("acme", "google")
        """
        return Operation(Request("DELETE", _path(org_slug, provider)), nothing)

    @operation
    def import_members(
        self,
        org_slug: str,
        provider: ConsentProvider,
        members: Sequence[MemberImport],
        *,
        idempotency_key: str | None = None,
    ) -> Operation[ImportedMembers]:
        """Make users, memberships and delegated connections, as far as they are missing; at most 1 000.

        >>> almanac.grants.import_members("acme", "google", [{"user_id": "ada", "email": "ada@acme.example"}])
        """
        where = f"{_path(org_slug, provider)}/members"
        request = Request.create(where, body(members=members), idempotency_key=idempotency_key)
        return Operation(request, data(ImportedMembers))

    @operation
    def directory(
        self,
        org_slug: str,
        provider: ConsentProvider,
        *,
        q: str | None = None,
        kind: DirectoryKind | None = None,
    ) -> Operation[DirectoryAnswer]:
        """The people and rooms that the provider lists now, with ``q`` in the name or address.

        >>> [each.email for each in almanac.grants.directory("acme", "google", kind="room").entries]
        """
        where = f"{_path(org_slug, provider)}/directory"
        return Operation(Request.get(where, query(q=q, kind=kind)), whole(DirectoryAnswer))


def _path(org_slug: str, provider: str) -> str:
    return path("/organizations/{}/grants/{}", org_slug, provider)
