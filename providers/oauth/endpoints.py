"""Where the providers are, and who we are to them."""

from __future__ import annotations

from dataclasses import dataclass

from providers.base import Token


@dataclass(frozen=True, slots=True)
class GoogleEndpoints:
    """Google's addresses, without a slash at the end; the sandbox puts its own here."""

    api: str
    auth: str
    token: str
    revoke: str
    userinfo: str


@dataclass(frozen=True, slots=True)
class MicrosoftEndpoints:
    """Microsoft's addresses, without a slash at the end, and the tenant whose accounts may connect."""

    graph: str
    login: str
    tenant: str

    @property
    def auth(self) -> str:
        return f"{self.login}/{self.tenant}/oauth2/v2.0/authorize"

    @property
    def token(self) -> str:
        return f"{self.login}/{self.tenant}/oauth2/v2.0/token"


@dataclass(frozen=True, slots=True)
class Client:
    """Our registration with a provider; without both id and secret the provider is not configured."""

    id: str
    secret: Token

    @property
    def complete(self) -> bool:
        return bool(self.id and self.secret.reveal)
