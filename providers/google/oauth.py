"""Google's OAuth server: consent, the identity of the account, revocation.

https://developers.google.com/identity/protocols/oauth2/web-server
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from providers.base import Token
from providers.errors import AuthorizationInvalid
from providers.google.parse import is_same_address
from providers.http.calls import FORM, Call, Json
from providers.http.send import send
from providers.oauth import consent, identity
from providers.oauth.client import REVOKE, Client, CodeExchangeResult, OAuth
from providers.oauth.consent import ConsentRequest
from providers.oauth.token_errors import error_for


@dataclass(frozen=True, slots=True)
class GoogleEndpoints:
    """Google's addresses, without a trailing slash; the sandbox replaces them."""

    api: str
    auth: str
    token: str
    revoke: str
    userinfo: str
    directory: str


class GoogleOAuth(OAuth):
    """Google: refresh tokens are not rotated, grants can be revoked."""

    def __init__(self, endpoints: GoogleEndpoints, client: Client) -> None:
        super().__init__("google", "Google", endpoints.token, client)
        self._endpoints = endpoints

    def link(self, request: ConsentRequest) -> str:
        """The URL of Google's consent page."""
        self._require_client()
        return link(self._endpoints.auth, self._client.id, request)

    def account(self, consented: CodeExchangeResult, *, deadline: float) -> identity.AccountIdentity:
        """The identity of the connected account, as far as the grant allows to read it."""
        token = consented.grant.access_token
        return account(self._endpoints, token, consented.claims, deadline=deadline)

    def revoke(self, token: Token, *, deadline: float) -> None:
        """Revoke the grant of an access or refresh token; one already revoked counts as success.

        Google revokes every token that the account granted to this OAuth client, for all connections.

        https://developers.google.com/identity/protocols/oauth2/web-server#tokenrevoke
        """
        body = urlencode({"token": token.reveal}).encode()
        call = Call(
            self.title, REVOKE, "POST", self._endpoints.revoke, body, content_type=FORM, answers=False
        )
        try:
            send(call, error_for, deadline=deadline)
        except AuthorizationInvalid:
            return  # 400 invalid_token: already revoked


def link(auth_url: str, client_id: str, request: ConsentRequest) -> str:
    """The URL of Google's consent page.

    A refresh token is issued with the first consent only, unless ``prompt=consent`` requests another. With
    ``select_account``, the person chooses even if only one account is signed in:
    https://developers.google.com/identity/protocols/oauth2/web-server#offline
    """
    prompts = ["select_account"] if request.chooses_account else []
    prompts += ["consent"] if request.offline else []
    return consent.link(
        auth_url,
        client_id,
        request,
        access_type="offline" if request.offline else "online",
        prompt=" ".join(prompts) or None,
    )


def account(
    endpoints: GoogleEndpoints, access_token: Token, claimed: Json, *, deadline: float
) -> identity.AccountIdentity:
    """A Google account from its claims, else from userinfo, else from the id of its main calendar.

    https://developers.google.com/identity/openid-connect/openid-connect#an-id-tokens-payload
    """
    caller = identity.IdentityCaller("Google", access_token, deadline)
    answer = claimed
    if identity.address(answer, "email") is None:
        answer = caller.get(endpoints.userinfo)
    known_id = identity.account_id(claimed, "sub") or identity.account_id(answer, "sub")
    if (email := identity.address(answer, "email")) is not None:
        verified = answer.get("email_verified") in (True, "true")
        return identity.AccountIdentity(
            known_id, email, frozenset((email,) if verified else ()), is_same_address
        )
    email = identity.address(caller.get(f"{endpoints.api}/users/me/calendarList/primary"), "id")
    return identity.AccountIdentity(known_id, email, frozenset((email,) if email else ()), is_same_address)
