"""The definition of Google Calendar."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from providers.base import IssuedTokens, Token
from providers.definition import ConsentGuide, Definition, GrantCredential, GrantGuide, Provider
from providers.errors import GrantRefused
from providers.google import organization_grants
from providers.google.channels import GoogleChannels
from providers.google.client import Costs, Google
from providers.google.errors import PROVIDER
from providers.google.oauth import GoogleEndpoints, GoogleOAuth
from providers.google.organization_grants import InvalidKey, ServiceAccountKey
from providers.google.parse import is_same_address
from providers.google.scopes import SCOPES
from providers.oauth.client import Client


class ServiceAccounts:
    """Tokens of service accounts, which impersonate the accounts of their domains."""

    def __init__(self, endpoints: GoogleEndpoints) -> None:
        self._endpoints = endpoints

    def token(self, grant: GrantCredential, subject: str | None, *, deadline: float) -> IssuedTokens:
        """An access token for the account ``subject``; the secret is the JSON text of a key file."""
        try:
            key = ServiceAccountKey.parse(orjson.loads(grant.secret or ""))
        except (InvalidKey, ValueError) as error:
            # It was checked before it was stored.
            raise GrantRefused("The key of the service account cannot be read: enter it again") from error
        return organization_grants.token(self._endpoints, key, subject or "", grant.scope, deadline=deadline)


def bind(own: Mapping[str, str]) -> Provider:
    """Google as an installation's settings describe it."""
    endpoints = GoogleEndpoints(
        api=own["api_url"],
        auth=own["auth_url"],
        token=own["token_url"],
        revoke=own["revoke_url"],
        userinfo=own["userinfo_url"],
    )
    client = Client(own["client_id"], Token(own["client_secret"]))
    return Provider(
        calendars=Google(endpoints),
        channels=GoogleChannels(endpoints),
        oauth=GoogleOAuth(endpoints, client),
        grants=ServiceAccounts(endpoints),
        configured=client.complete,
        hosts=(endpoints.api, endpoints.token),
        consent_page=endpoints.auth,
    )


DEFINITION = Definition(
    name="google",
    title="Google",
    service=PROVIDER,
    scopes=SCOPES,
    costs=Costs(),
    bind=bind,
    consent=ConsentGuide(
        console="https://console.cloud.google.com/apis/credentials",
        steps=(
            "In the Google Cloud console, enable the Google Calendar API and create an OAuth client of the "
            "type Web application.",
            "Give it the redirect URL below, and add the scopes on the page Data access.",
            "Copy its client ID and its client secret into the form.",
        ),
    ),
    grant=GrantGuide(
        steps=(
            "In the Google Cloud console, enable the Google Calendar API, make a service account, and add a "
            "key of the type JSON to it. Google downloads the key file.",
            "In the Google Admin console, under Domain-wide delegation, add the client ID of the service "
            "account with exactly the scopes of the chosen access. They are listed below.",
            "Choose the subject: an active account of the domain that sees the free and busy times of its "
            "colleagues. Members have addresses in the domain of the subject.",
        ),
        impersonates=True,
    ),
    global_ids=True,
    revocable=True,
    takes_event_ids=True,
    same_id=is_same_address,
)
