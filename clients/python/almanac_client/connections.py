"""Users' provider accounts, and how to connect them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict, Unpack

from almanac_client.pages import PAGE, rows
from almanac_client.parameters import When, body, camel, query, timestamp
from almanac_client.records import AccessLevel, AccessType, Connection, Provider, ProviderLink
from almanac_client.transport import Transport, path


class Consent(TypedDict, total=False):
    """Options of a consent request.

    ``scope`` is a level of access, or the provider's own scopes. At ``redirect_url`` the application receives
    the code itself and passes it to ``verify``; to ``return_url`` Almanac sends the user after connecting the
    account. Any account other than ``expected_email`` is rejected.
    """

    scope: AccessLevel | Sequence[str]
    access_type: AccessType
    redirect_url: str
    return_url: str
    expected_email: str


class Connections:
    """Provider accounts of users."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, user_id: str, *, show_token: bool = False, limit: int = PAGE) -> Iterator[Connection]:
        """Every connection of a user; tokens are included only for an API key that may show them.

        >>> [each["provider"] for each in almanac.connections.list("ada") if each["alive"]]
        """
        params = query({}, show_token=show_token)
        return rows(self._transport, path("/users/{}/oauth", user_id), params, limit, Connection)

    def get(self, user_id: str, provider: Provider, *, show_token: bool = False) -> Connection:
        """A user's connection with a provider.

        >>> almanac.connections.get("ada", "google")["alive"]
        """
        where = path("/users/{}/oauth/{}", user_id, provider)
        found: Connection = self._transport.get(where, query({}, show_token=show_token)).body["data"]
        return found

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
    ) -> Connection:
        """Connect an account with tokens that the application obtained; replaces one of the same provider.

        ``scope`` has the provider's scopes, or a level of access.

        >>> almanac.connections.store("ada", "google", access_token=token, scope=granted)
        """
        fields = body(
            access_token=access_token,
            scope=list(scope),
            refresh_token=refresh_token,
            email=email,
            expires_at=None if expires_at is None else timestamp(expires_at),
        )
        where = path("/users/{}/oauth/{}", user_id, provider)
        reply = self._transport.create(where, fields, idempotency_key=idempotency_key)
        made: Connection = reply.body["data"]
        return made

    def delete(self, user_id: str, provider: Provider, *, revoke: bool = True) -> None:
        """Delete a connection and its tokens.

        A Google grant that Almanac obtained is revoked when no other connection uses its account. Without
        ``revoke`` it stays valid.

        >>> almanac.connections.delete("ada", "google")
        """
        where = path("/users/{}/oauth/{}", user_id, provider)
        self._transport.send("DELETE", where, query=query({}, revoke=revoke))

    def access_token(self, user_id: str, provider: Provider) -> str:
        """A valid access token; requires an API key that may show tokens.

        >>> almanac.connections.access_token("ada", "microsoft")
        """
        reply = self._transport.get(path("/users/{}/oauth/{}/token", user_id, provider))
        return str(reply.body["data"]["accessToken"])

    def authorize(self, user_id: str, provider: Provider, **consent: Unpack[Consent]) -> str:
        """A link with which the user connects an account; valid for ten minutes and one use.

        >>> almanac.connections.authorize("ada", "google", scope="read")
        """
        where = path("/users/{}/oauth/{}/authorize", user_id, provider)
        fields = {camel(name): _several(value) for name, value in consent.items()}
        return str(self._transport.send("POST", where, body=fields).body["data"]["link"])

    def link(self, user_id: str, provider: Provider, **consent: Unpack[Consent]) -> str:
        """The same by GET.

        >>> almanac.connections.link("ada", "microsoft", return_url="https://example.com/settings")
        """
        where = path("/users/{}/oauth/{}/link", user_id, provider)
        return str(self._transport.get(where, query(consent)).body["data"]["link"])

    def links(self, user_id: str, **consent: Unpack[Consent]) -> Sequence[ProviderLink]:
        """Such a link for each provider that is configured on this installation.

        >>> {each["provider"]: each["link"] for each in almanac.connections.links("ada")}
        """
        where = path("/users/{}/oauth/links", user_id)
        found: Sequence[ProviderLink] = self._transport.get(where, query(consent)).body["data"]
        return found

    def verify(
        self, provider: Provider, *, code: str, state: str, scope: str | Sequence[str] | None = None
    ) -> None:
        """Complete a consent whose redirect went to the application's own ``redirect_url``.

        >>> almanac.connections.verify("google", code=args["code"], state=args["state"])
        """
        fields = body(code=code, state=state, scope=_several(scope))
        self._transport.send("POST", path("/users/oauth/{}/verify", provider), body=fields)


def _several(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else list(value)
