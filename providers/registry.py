"""The providers of one installation, built from their addresses and our registrations with them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from providers.base import CalendarProvider, Channels
from providers.google.channels import GoogleChannels
from providers.google.client import Google
from providers.microsoft.client import Microsoft
from providers.microsoft.subscriptions import MicrosoftSubscriptions
from providers.names import ProviderName
from providers.oauth.client import GoogleOAuth, MicrosoftOAuth, OAuth
from providers.oauth.endpoints import Client, GoogleEndpoints, MicrosoftEndpoints


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider: calendars, channels, OAuth server, and whether an operator has registered us there."""

    calendars: CalendarProvider
    channels: Channels
    oauth: OAuth
    configured: bool

    def registered(self, oauth: OAuth) -> Provider:
        """The same provider under another registration."""
        return replace(self, oauth=oauth, configured=True)


def providers(
    google: GoogleEndpoints,
    google_client: Client,
    microsoft: MicrosoftEndpoints,
    microsoft_client: Client,
) -> dict[ProviderName, Provider]:
    """Both providers, whether configured or not: stored tokens are read without a client until they end."""
    return {
        ProviderName.GOOGLE: Provider(
            Google(google),
            GoogleChannels(google),
            GoogleOAuth(google, google_client),
            google_client.complete,
        ),
        ProviderName.MICROSOFT: Provider(
            Microsoft(microsoft),
            MicrosoftSubscriptions(microsoft),
            MicrosoftOAuth(microsoft, microsoft_client),
            microsoft_client.complete,
        ),
    }
