"""Where the providers are, and who we are to them."""

from __future__ import annotations

from dataclasses import dataclass

from providers.base import Token


@dataclass(frozen=True, slots=True)
class GoogleEndpoints:
    """Google's addresses, without a slash at the end; the sandbox puts its own here."""

    api: str = "https://www.googleapis.com/calendar/v3"
    auth: str = "https://accounts.google.com/o/oauth2/v2/auth"
    token: str = "https://oauth2.googleapis.com/token"
    revoke: str = "https://oauth2.googleapis.com/revoke"
    userinfo: str = "https://openidconnect.googleapis.com/v1/userinfo"


@dataclass(frozen=True, slots=True)
class MicrosoftEndpoints:
    """Microsoft's addresses, without a slash at the end, and the tenant whose accounts may connect."""

    graph: str = "https://graph.microsoft.com/v1.0"
    login: str = "https://login.microsoftonline.com"
    tenant: str = "common"

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
