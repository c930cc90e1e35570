"""Addresses of the providers, and our OAuth client there."""

from __future__ import annotations

from dataclasses import dataclass

from providers.base import Token


@dataclass(frozen=True, slots=True)
class GoogleEndpoints:
    """Google's addresses, without a trailing slash; the sandbox replaces them."""

    api: str
    auth: str
    token: str
    revoke: str
    userinfo: str


@dataclass(frozen=True, slots=True)
class MicrosoftEndpoints:
    """Microsoft's addresses, without a trailing slash, and the tenant whose accounts may connect."""

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
    """Our OAuth client at a provider; without both id and secret the provider is not configured."""

    id: str
    secret: Token

    @property
    def complete(self) -> bool:
        return bool(self.id and self.secret.reveal)
