"""The token endpoints of both providers: refresh a grant, end it, and say what their refusals mean.

https://developers.google.com/identity/protocols/oauth2/web-server#offline
https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow#refresh-the-access-token
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from providers.base import Grant, ProviderName, Token
from providers.endpoints import Client, GoogleEndpoints, MicrosoftEndpoints
from providers.errors import (
    AuthorizationInvalid,
    GrantGone,
    ProviderError,
    ProviderNotConfigured,
    RateLimited,
    Unavailable,
)
from providers.http import FORM, Call, Json, Reply, send, unreadable

REFRESH = "oauth.token.refresh"
REVOKE = "oauth.revoke"

# Only a new consent helps.
GONE = frozenset({"invalid_grant", "interaction_required", "consent_required", "login_required"})
# The operator's fault: the connection is as good as before.
MISCONFIGURED = frozenset({"invalid_client", "unauthorized_client"})
PASSING = frozenset({"temporarily_unavailable", "internal_failure", "server_error"})

# https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes#aadsts-error-codes
# AADSTS50196: "the server terminated an operation because it encountered a client request loop".
LOOP = 50196
# How long to leave an account alone after it, in seconds.
LOOP_PAUSE = 60.0

# Both providers always say when a token ends; what is assumed of one that does not, in seconds.
DEFAULT_LIFE = 300


class OAuth:
    """What both token endpoints have in common; ``title`` is the provider's name for people."""

    def __init__(self, name: ProviderName, title: str, token_url: str, client: Client) -> None:
        self.name = name
        self._title = title
        self._token_url = token_url
        self._client = client

    def refresh(self, refresh_token: Token, *, deadline: float) -> Grant:
        """Trade a refresh token for a new access token; safe to repeat.

        :raise GrantGone: when only a new consent helps
        :raise ProviderNotConfigured: without client id and secret, or when the provider refuses them
        :raise Unavailable: when the same call may work later
        """
        self._require_client()
        answer = self._post(
            REFRESH,
            self._token_url,
            {
                "grant_type": "refresh_token",
                "refresh_token": refresh_token.reveal,
                "client_id": self._client.id,
                "client_secret": self._client.secret.reveal,
            },
            deadline,
        )
        return self._grant(answer)

    def revoke(self, token: Token, *, deadline: float) -> None:
        """Do nothing: this provider has no way for an application to end one grant."""

    def _require_client(self) -> None:
        if not self._client.complete:
            raise ProviderNotConfigured(
                f"{self._title} is not configured: this installation is not registered there"
            )

    def _post(
        self, operation: str, url: str, form: dict[str, str], deadline: float, *, answers: bool = True
    ) -> Json:
        body = urlencode(form).encode()
        call = Call(self._title, operation, "POST", url, body, content_type=FORM, answers=answers)
        return send(call, error_for, deadline=deadline)

    def _grant(self, answer: Json) -> Grant:
        access, refresh, scope = (answer.get(each) for each in ("access_token", "refresh_token", "scope"))
        if not isinstance(access, str) or not access:
            raise unreadable(self._title, REFRESH)
        try:
            life = timedelta(seconds=int(answer.get("expires_in", DEFAULT_LIFE)))
            expires_at = datetime.now(UTC) + life
        except (TypeError, ValueError, OverflowError):
            raise unreadable(self._title, REFRESH) from None
        return Grant(
            access_token=Token(access),
            refresh_token=Token(refresh) if isinstance(refresh, str) and refresh else None,
            expires_at=expires_at,
            scope=tuple(scope.split()) if isinstance(scope, str) else None,
        )


class GoogleOAuth(OAuth):
    """Google's token endpoint: refresh tokens stay, grants can be revoked."""

    def __init__(self, endpoints: GoogleEndpoints, client: Client) -> None:
        super().__init__(ProviderName.GOOGLE, "Google", endpoints.token, client)
        self._revoke_url = endpoints.revoke

    def revoke(self, token: Token, *, deadline: float) -> None:
        """End the whole grant behind an access or refresh token; one already gone is a success.

        https://developers.google.com/identity/protocols/oauth2/web-server#tokenrevoke
        """
        try:
            self._post(REVOKE, self._revoke_url, {"token": token.reveal}, deadline, answers=False)
        except AuthorizationInvalid:
            return  # 400 invalid_token: nothing is left to end


class MicrosoftOAuth(OAuth):
    """Entra's token endpoint: every refresh rotates the refresh token; applications cannot revoke."""

    def __init__(self, endpoints: MicrosoftEndpoints, client: Client) -> None:
        super().__init__(ProviderName.MICROSOFT, "Microsoft", endpoints.token, client)


def error_for(reply: Reply) -> ProviderError:
    """The exception for a refusal, by its ``error`` word (RFC 6749, 5.2) and then by its status."""
    word = (reply.body or {}).get("error")
    if not isinstance(word, str):
        word = ""
    call = {"operation": reply.operation}
    if word in GONE and LOOP in _codes(reply):
        return RateLimited(f"{reply.provider} asks us to slow down", **call, retry_after=LOOP_PAUSE)
    if word in GONE:
        return GrantGone(f"{reply.provider} says that this connection has ended", **call)
    if word == "invalid_token":
        return AuthorizationInvalid(f"{reply.provider} does not know this token", **call)
    if word in MISCONFIGURED:
        return ProviderNotConfigured(
            f"{reply.provider} refuses the registration of this installation", **call
        )
    if reply.status == 429:
        return RateLimited(f"{reply.provider} asks us to slow down", **call, retry_after=reply.retry_after)
    if word in PASSING or reply.status >= 500 or reply.status == 408 or not word:
        return Unavailable(
            f"{reply.provider} is not available just now", **call, retry_after=reply.retry_after
        )
    return ProviderError(f"{reply.provider} refused the request", **call)


def _codes(reply: Reply) -> list[object]:
    codes = (reply.body or {}).get("error_codes")
    return codes if isinstance(codes, list) else []
