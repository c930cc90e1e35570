"""Users' provider accounts, and how to connect them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from almanac_client.messages import Request, path
from almanac_client.operations import PAGE, Listing, Operation, data, field, nothing, rows
from almanac_client.parameters import When, body, query
from almanac_client.records import Connection, ProviderLink, UserConnection
from almanac_client.resources import Resource, TransportT, listing, operation
from almanac_client.words import AccessLevel, AccessType, ConsentProvider, Provider

# Below, ``list`` is the method.
Links = list[ProviderLink]
UserConnections = list[UserConnection]


class Consent(TypedDict, total=False):
    """Options of a consent request.

    ``scope`` is a level of access, or the provider's own scopes. At ``redirect_url`` the application receives
    the code itself and passes it to ``verify``; to ``return_url`` Almanac sends the user after connecting the
    account. Any account other than ``expected_email`` is rejected. ``account`` is ``default``, ``add`` for
    another account of the provider, or the id of the connection to renew.
    """

    scope: AccessLevel | Sequence[str]
    access_type: AccessType
    redirect_url: str
    return_url: str
    expected_email: str
    account: str


class Connections(Resource[TransportT]):
    """Provider accounts of users."""

    @listing
    def list(self, user_id: str, *, show_token: bool = False, limit: int = PAGE) -> Listing[Connection]:
        """A user's default connection with each provider.

        Tokens are included only for an API key that may show them.

        >>> [each.provider for each in almanac.connections.list("ada") if each.alive]
        """
        request = Request.get(path("/users/{}/oauth", user_id), query(show_token=show_token))
        return Listing(request, limit, rows(list[Connection]))

    @operation
    def get(self, user_id: str, provider: Provider, *, show_token: bool = False) -> Operation[Connection]:
        """A user's default connection with a provider.

        >>> almanac.connections.get("ada", "google").alive
        """
        request = Request.get(_path(user_id, provider), query(show_token=show_token))
        return Operation(request, data(Connection))

    @operation
    def store(
        self,
        user_id: str,
        provider: Provider,
        *,
        access_token: str,
        scope: Sequence[str],
        refresh_token: str | None = None,
        email: str | None = None,
        expires_at: When | None = None,
        idempotency_key: str | None = None,
    ) -> Operation[Connection]:
        """Connect an account with tokens that the application obtained; replaces the default connection.

        ``scope`` has the provider's scopes, or a level of access.

        >>> almanac.connections.store("ada", "google", access_token=token, scope=granted)
        """
        fields = body(
            access_token=access_token,
            scope=scope,
            refresh_token=refresh_token,
            email=email,
            expires_at=expires_at,
        )
        request = Request.create(_path(user_id, provider), fields, idempotency_key=idempotency_key)
        return Operation(request, data(Connection))

    @operation
    def delegate(
        self,
        user_id: str,
        provider: Provider,
        *,
        email: str,
        organization: str,
        idempotency_key: str | None = None,
    ) -> Operation[Connection]:
        """Connect a mailbox by the grant of an organization; replaces one by the grant, or the default one.

        >>> almanac.connections.delegate("ada", "google", email="ada@acme.example", organization="acme")
        """
        fields = body(type="delegated", email=email, organization=organization)
        request = Request.create(_path(user_id, provider), fields, idempotency_key=idempotency_key)
        return Operation(request, data(Connection))

    @operation
    def delete(self, user_id: str, provider: Provider, *, revoke: bool = True) -> Operation[None]:
        """Delete the default connection with a provider, and its tokens.

        A Google grant that Almanac obtained is revoked when no other connection uses its account. Without
        ``revoke`` it stays valid.

        >>> almanac.connections.delete("ada", "google")
        """
        return Operation(Request("DELETE", _path(user_id, provider), query(revoke=revoke)), nothing)

    @operation
    def all(self, user_id: str) -> Operation[UserConnections]:
        """All connections of a user, by provider, in each the default one first.

        >>> [each.email for each in almanac.connections.all("ada") if each.provider == "google"]
        """
        return Operation(Request.get(path("/users/{}/connections", user_id)), data(UserConnections))

    @operation
    def add(
        self,
        user_id: str,
        provider: Provider,
        *,
        access_token: str | None = None,
        scope: Sequence[str] | None = None,
        refresh_token: str | None = None,
        email: str | None = None,
        expires_at: When | None = None,
        label: str | None = None,
        organization: str | None = None,
        url: str | None = None,
        username: str | None = None,
        password: str | None = None,
        idempotency_key: str | None = None,
    ) -> Operation[UserConnection]:
        """Connect an account beside the others; the same account again is replaced.

        From tokens with their ``scope``; or for ``email`` by an ``organization``'s grant; or from ``url``
        with ``username`` and ``password`` of a CalDAV account; or from the ``url`` of a feed.

        >>> almanac.connections.add("ada", "google", access_token=token, scope=granted, email=address)
        """
        fields = body(
            provider=provider,
            type=None if organization is None else "delegated",
            access_token=access_token,
            scope=scope,
            refresh_token=refresh_token,
            email=email,
            expires_at=expires_at,
            label=label,
            organization=organization,
            url=url,
            username=username,
            password=password,
        )
        where = path("/users/{}/connections", user_id)
        request = Request.create(where, fields, idempotency_key=idempotency_key)
        return Operation(request, data(UserConnection))

    @operation
    def one(self, user_id: str, connection_id: str) -> Operation[UserConnection]:
        """A connection by its id.

        >>> almanac.connections.one("ada", connection.id).last_read
        """
        return Operation(Request.get(_one(user_id, connection_id)), data(UserConnection))

    @operation
    def change(
        self, user_id: str, connection_id: str, *, label: str | None = None, default: bool | None = None
    ) -> Operation[UserConnection]:
        """Change the label of a connection (``""`` removes it), or make it the default one of its provider.

        >>> almanac.connections.change("ada", connection.id, label="Family", default=True)
        """
        fields = body(label=label, default=default)
        request = Request("PATCH", _one(user_id, connection_id), body=fields)
        return Operation(request, data(UserConnection))

    @operation
    def remove(self, user_id: str, connection_id: str, *, revoke: bool = True) -> Operation[None]:
        """Delete a connection by its id, as ``delete`` does with the default one.

        >>> almanac.connections.remove("ada", connection.id)
        """
        return Operation(Request("DELETE", _one(user_id, connection_id), query(revoke=revoke)), nothing)

    @operation
    def access_token(self, user_id: str, provider: ConsentProvider) -> Operation[str]:
        """A valid access token; requires an API key that may show tokens.

        >>> almanac.connections.access_token("ada", "microsoft")
        """
        request = Request.get(path("/users/{}/oauth/{}/token", user_id, provider))
        return Operation(request, field("accessToken"))

    @operation
    def authorize(
        self, user_id: str, provider: ConsentProvider, **consent: Unpack[Consent]
    ) -> Operation[str]:
        """A link with which the user connects an account; valid for ten minutes and one use.

        >>> almanac.connections.authorize("ada", "google", scope="read")
        """
        where = path("/users/{}/oauth/{}/authorize", user_id, provider)
        return Operation(Request("POST", where, body=body(consent)), field("link"))

    @operation
    def link(self, user_id: str, provider: ConsentProvider, **consent: Unpack[Consent]) -> Operation[str]:
        """The same by GET.

        >>> almanac.connections.link("ada", "microsoft", return_url="https://example.com/settings")
        """
        where = path("/users/{}/oauth/{}/link", user_id, provider)
        return Operation(Request.get(where, query(consent)), field("link"))

    @operation
    def links(self, user_id: str, **consent: Unpack[Consent]) -> Operation[Links]:
        """Such a link for each provider that is configured on this installation.

        >>> {each.provider: each.link for each in almanac.connections.links("ada")}
        """
        return Operation(Request.get(path("/users/{}/oauth/links", user_id), query(consent)), data(Links))

    @operation
    def verify(
        self, provider: ConsentProvider, *, code: str, state: str, scope: str | Sequence[str] | None = None
    ) -> Operation[None]:
        """Complete a consent whose redirect went to the application's own ``redirect_url``.

        >>> almanac.connections.verify("google", code=args["code"], state=args["state"])
        """
        where = path("/users/oauth/{}/verify", provider)
        fields = body(code=code, state=state, scope=scope)
        return Operation(Request("POST", where, body=fields), nothing)


def _one(user_id: str, connection_id: str) -> str:
    return path("/users/{}/connections/{}", user_id, connection_id)


def _path(user_id: str, provider: str) -> str:
    return path("/users/{}/oauth/{}", user_id, provider)
