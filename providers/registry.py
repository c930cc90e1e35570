"""Builds the providers of one installation from their endpoints and OAuth clients."""

from __future__ import annotations

from dataclasses import dataclass, replace

from providers.base import CalendarProvider, Channels
from providers.google import scopes as google_scopes
from providers.google.channels import GoogleChannels
from providers.google.client import Google
from providers.microsoft import scopes as microsoft_scopes
from providers.microsoft.client import Microsoft
from providers.microsoft.subscriptions import MicrosoftSubscriptions
from providers.oauth.client import GoogleOAuth, MicrosoftOAuth, OAuth
from providers.oauth.endpoints import Client, GoogleEndpoints, MicrosoftEndpoints
from providers.scopes import Scopes


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider: calendars, channels, OAuth server, and whether the operator has set its OAuth client."""

    calendars: CalendarProvider
    channels: Channels
    oauth: OAuth
    configured: bool

    def registered(self, oauth: OAuth) -> Provider:
        """The same provider with another OAuth client."""
        return replace(self, oauth=oauth, configured=True)


def providers(
    google: GoogleEndpoints,
    google_client: Client,
    microsoft: MicrosoftEndpoints,
    microsoft_client: Client,
) -> dict[str, Provider]:
    """Both providers, configured or not: stored access tokens work without an OAuth client until expiry."""
    return {
        "google": Provider(
            Google(google),
            GoogleChannels(google),
            GoogleOAuth(google, google_client),
            google_client.complete,
        ),
        "microsoft": Provider(
            Microsoft(microsoft),
            MicrosoftSubscriptions(microsoft),
            MicrosoftOAuth(microsoft, microsoft_client),
            microsoft_client.complete,
        ),
    }


_SCOPES = {"google": google_scopes.SCOPES, "microsoft": microsoft_scopes.SCOPES}


def names() -> tuple[str, ...]:
    """The names of the providers, as spelled in URLs and answers."""
    return tuple(_SCOPES)


def scopes(name: str) -> Scopes:
    """The scopes of a provider."""
    return _SCOPES[name]
