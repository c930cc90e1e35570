"""What all OAuth servers have in common: exchange codes, refresh tokens, check a registration (RFC 6749)."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from authlib.oauth2.rfc6749.parameters import prepare_token_request

from providers.base import IssuedTokens, Token
from providers.errors import ProviderNotConfigured, Unavailable
from providers.http.calls import FORM, Call, ErrorReader, Json, unreadable
from providers.http.send import send
from providers.oauth import identity, registration_probe
from providers.oauth.consent import ConsentRequest
from providers.oauth.identity import AccountIdentity
from providers.oauth.registration_probe import Finding
from providers.oauth.token_errors import error_for

REDEEM = "oauth.token.redeem"
REFRESH = "oauth.token.refresh"
REVOKE = "oauth.revoke"
CHECK = "oauth.token.check"

# In seconds: of a token whose answer gives no lifetime that makes sense. A token that ends sooner is
# refreshed when it is rejected.
DEFAULT_LIFE = 3600
# The longest lifetime that makes sense: Microsoft's longest is a day.
LONGEST_LIFE = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Client:
    """Our OAuth client at a provider; without both id and secret the provider is not configured."""

    id: str
    secret: Token

    @property
    def complete(self) -> bool:
        return bool(self.id and self.secret.reveal)


@dataclass(frozen=True, slots=True)
class CodeExchangeResult:
    """The result of a code exchange: the grant, and the claims of the id token."""

    grant: IssuedTokens
    claims: Json = field(repr=False)


def token_grant(title: str, answer: Json, operation: str) -> IssuedTokens:
    """The tokens in the answer of a token endpoint.

    :raise Unavailable: when it cannot be parsed
    """
    access, refresh, scope = (answer.get(each) for each in ("access_token", "refresh_token", "scope"))
    if not isinstance(access, str) or not access:
        raise unreadable(title, operation)
    return IssuedTokens(
        access_token=Token(access),
        refresh_token=Token(refresh) if isinstance(refresh, str) and refresh else None,
        expires_at=datetime.now(UTC) + timedelta(seconds=_lifetime(answer.get("expires_in"))),
        scope=tuple(scope.split()) if isinstance(scope, str) else None,
    )


def _lifetime(stated: object) -> float:
    """The lifetime of a token in seconds. It may be stated as a text, and with a fraction."""
    try:
        life = float(stated) if isinstance(stated, int | float | str) else DEFAULT_LIFE
    except (ValueError, OverflowError):
        return DEFAULT_LIFE
    # A life of one second is JSON's ``true``.
    return life if 1 < life <= LONGEST_LIFE else DEFAULT_LIFE


class OAuth(ABC):
    """The common part of all OAuth servers; ``title`` is the provider's name for people."""

    # What this server's own error codes and words say about a registration.
    findings: Mapping[object, Finding] = {}

    def __init__(self, name: str, title: str, token_url: str, client: Client) -> None:
        self.name = name
        self.title = title
        self._token_url = token_url
        self._client = client

    @property
    def client_id(self) -> str:
        """The OAuth client id; empty when not configured."""
        return self._client.id

    @property
    def client(self) -> Client:
        """The OAuth client."""
        return self._client

    @abstractmethod
    def link(self, request: ConsentRequest) -> str:
        """The URL of the consent page.

        :raise ProviderNotConfigured: without client id and secret
        """

    def redeem(self, code: str, verifier: str, redirect_uri: str, *, deadline: float) -> CodeExchangeResult:
        """Exchange an authorization code for tokens. Never retried: a code can be used once.

        :raise GrantGone: when the code was used before, has expired, or was issued to another client
        :raise ProviderNotConfigured: without client id and secret
        :raise Misconfigured: when the provider rejects them
        :raise Unavailable: when the provider is down; the code may be used up nevertheless
        """
        form = {"code": code, "code_verifier": verifier, "redirect_uri": redirect_uri}
        answer = self._ask_for_tokens(REDEEM, "authorization_code", form, deadline, repeatable=False)
        grant = token_grant(self.title, answer, REDEEM)
        return CodeExchangeResult(grant, identity.claims(answer.get("id_token"), self._client.id))

    @abstractmethod
    def account(self, consented: CodeExchangeResult, *, deadline: float) -> AccountIdentity:
        """The identity of the connected account, as far as the grant allows to read it."""

    def refresh(self, refresh_token: Token, *, deadline: float) -> IssuedTokens:
        """Exchange a refresh token for a new access token; safe to repeat.

        :raise GrantGone: when the user has to consent again
        :raise ProviderNotConfigured: without client id and secret
        :raise Misconfigured: when the provider rejects them
        :raise Unavailable: when the same call may succeed later
        """
        form = {"refresh_token": refresh_token.reveal}
        answer = self._ask_for_tokens(REFRESH, "refresh_token", form, deadline)
        return token_grant(self.title, answer, REFRESH)

    @abstractmethod
    def revoke(self, token: Token, *, deadline: float) -> None:
        """Revoke a grant, where the provider supports it; one already revoked counts as success."""

    def check(self, redirect_uri: str, *, deadline: float) -> Finding:
        """Check client id and secret by how the provider rejects a made-up code.

        :raise ProviderNotConfigured: without client id and secret
        """
        form = {"code": secrets.token_urlsafe(32), "redirect_uri": redirect_uri}
        # A server that issues tokens for a made-up code proves nothing.
        return self._refusal("authorization_code", form, deadline) or registration_probe.unclear(self.title)

    def _refusal(self, grant_type: str, form: dict[str, str], deadline: float) -> Finding | None:
        """The finding from the error answer to such a request; None when tokens are issued."""
        try:
            self._ask_for_tokens(
                CHECK, grant_type, form, deadline, read_error=registration_probe.TokenEndpointError
            )
        except registration_probe.TokenEndpointError as refusal:
            return registration_probe.read(refusal.reply, self.findings)
        except Unavailable:
            return registration_probe.unreachable(self.title)
        return None

    def _authentication(self) -> dict[str, str]:
        """The fields of a token request that prove this client.

        :raise Misconfigured: when they cannot be made
        """
        return {"client_id": self._client.id, "client_secret": self._client.secret.reveal}

    def _require_client(self) -> None:
        if not self._client.complete:
            raise ProviderNotConfigured(
                f"{self.title} is not configured: this installation is not registered there"
            )

    def _ask_for_tokens(
        self,
        operation: str,
        grant_type: str,
        form: dict[str, str],
        deadline: float,
        *,
        repeatable: bool = True,
        read_error: ErrorReader = error_for,
    ) -> Json:
        self._require_client()
        body: str = prepare_token_request(grant_type, **form, **self._authentication())
        call = Call(
            self.title,
            operation,
            "POST",
            self._token_url,
            body.encode(),
            content_type=FORM,
            repeatable=repeatable,
        )
        return send(call, read_error, deadline=deadline)
