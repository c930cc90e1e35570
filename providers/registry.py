"""The providers of one installation, built from their addresses and our registrations with them."""

from __future__ import annotations

from dataclasses import dataclass

from providers.base import CalendarProvider
from providers.endpoints import Client, GoogleEndpoints, MicrosoftEndpoints
from providers.google.client import Google
from providers.microsoft.client import Microsoft
from providers.names import ProviderName
from providers.oauth import GoogleOAuth, MicrosoftOAuth, OAuth


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider: its calendars, its OAuth server, and whether an operator has registered us there."""

    calendars: CalendarProvider
    oauth: OAuth
    configured: bool


def providers(
    google: GoogleEndpoints,
    google_client: Client,
    microsoft: MicrosoftEndpoints,
    microsoft_client: Client,
) -> dict[ProviderName, Provider]:
    """Both providers, whether configured or not: stored tokens are read without a client until they end."""
    return {
        ProviderName.GOOGLE: Provider(
            Google(google), GoogleOAuth(google, google_client), google_client.complete
        ),
        ProviderName.MICROSOFT: Provider(
            Microsoft(microsoft), MicrosoftOAuth(microsoft, microsoft_client), microsoft_client.complete
        ),
    }
