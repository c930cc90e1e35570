"""The accounts of the live tests, from the environment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from providers.base import Account, Token
from providers.google import organization_grants as google_grants
from providers.google.oauth import GoogleEndpoints, GoogleOAuth
from providers.google.service_accounts import ServiceAccountKey
from providers.microsoft import organization_grants as microsoft_grants
from providers.microsoft.oauth import MicrosoftEndpoints, MicrosoftOAuth
from providers.oauth.client import Client, OAuth
from store.config.settings import ProviderSettings

# Seconds for one call of an adapter.
SECONDS = 30.0

GOOGLE, MICROSOFT = "google", "microsoft"

PREFIX = "ALMANAC_LIVE_"

ACCOUNT = {
    GOOGLE: ("GOOGLE_CLIENT_ID", "GOOGLE_CLIENT_SECRET", "GOOGLE_REFRESH_TOKEN"),
    MICROSOFT: ("MICROSOFT_CLIENT_ID", "MICROSOFT_CLIENT_SECRET", "MICROSOFT_REFRESH_TOKEN"),
}
# Without these, the tests of grants and of push are left out.
GRANT = {
    GOOGLE: ("GOOGLE_GRANT_KEY_FILE", "GOOGLE_GRANT_MEMBER"),
    MICROSOFT: (
        *("MICROSOFT_GRANT_TENANT", "MICROSOFT_GRANT_CLIENT_ID"),
        *("MICROSOFT_GRANT_CLIENT_SECRET", "MICROSOFT_GRANT_MEMBER"),
    ),
}
PUSH = ("PUSH_URL", "PUSH_PORT")
# The calendar to write to; the main one by default.
CALENDAR = {GOOGLE: "GOOGLE_CALENDAR", MICROSOFT: "MICROSOFT_CALENDAR"}

DELEGATED_SCOPES = frozenset({"https://www.googleapis.com/auth/calendar.readonly"})


class RefreshedTokens:
    """A ``TokenSource`` that has a refresh token."""

    def __init__(self, oauth: OAuth, refresh_token: Token) -> None:
        self._oauth = oauth
        self._refresh_token = refresh_token
        self._token: Token | None = None
        self.scope: frozenset[str] = frozenset()

    def access_token(self, *, deadline: float) -> Token:
        if self._token is None:
            issued = self._oauth.refresh(self._refresh_token, deadline=deadline)
            # Microsoft issues another refresh token with each access token.
            self._refresh_token = issued.refresh_token or self._refresh_token
            self._token, self.scope = issued.access_token, frozenset(issued.scope or ())
        return self._token

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        self._token = None
        return self.access_token(deadline=deadline)


@dataclass(frozen=True)
class GrantTokens:
    """A ``TokenSource`` of an organization grant, which requests a token for each operation."""

    endpoints: GoogleEndpoints | MicrosoftEndpoints
    given: Mapping[str, str] = field(repr=False)

    def access_token(self, *, deadline: float) -> Token:
        if isinstance(self.endpoints, GoogleEndpoints):
            key = ServiceAccountKey.parse(
                orjson.loads(Path(self.given["GOOGLE_GRANT_KEY_FILE"]).read_bytes())
            )
            member = self.given["GOOGLE_GRANT_MEMBER"]
            issued = google_grants.token(self.endpoints, key, member, DELEGATED_SCOPES, deadline=deadline)
        else:
            client = Client(
                self.given["MICROSOFT_GRANT_CLIENT_ID"], Token(self.given["MICROSOFT_GRANT_CLIENT_SECRET"])
            )
            tenant = self.given["MICROSOFT_GRANT_TENANT"]
            issued = microsoft_grants.token(self.endpoints, tenant, client, deadline=deadline)
        return issued.access_token

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        return self.access_token(deadline=deadline)


@dataclass(frozen=True)
class Push:
    """The public address that reaches ``port`` of this machine, for instance through a tunnel."""

    url: str
    port: int


@dataclass(frozen=True)
class LiveAccount:
    """One account to test; ``grant`` and ``push`` are None when their credentials are not given."""

    provider: str
    endpoints: GoogleEndpoints | MicrosoftEndpoints
    oauth: OAuth
    account: Account
    calendar: str
    grant: Account | None
    member: str
    push: Push | None


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """The values that no recorded answer may contain."""
    return [value for name, value in environment.items() if name.startswith(PREFIX) and len(value) > 5]


def missing(environment: Mapping[str, str]) -> dict[str, list[str]]:
    """The variables that are not set, by what needs them."""
    given = _given(environment)
    needed = {f"{name.title()}: read and write": names for name, names in ACCOUNT.items()}
    needed |= {f"{name.title()}: organization grant": names for name, names in GRANT.items()}
    needed["push, of both providers"] = PUSH
    return {
        what: lacking
        for what, names in needed.items()
        if (lacking := [PREFIX + name for name in names if name not in given])
    }


def accounts(
    environment: Mapping[str, str], there: ProviderSettings, *, seconds: float = SECONDS
) -> list[LiveAccount]:
    """The accounts whose variables are all set.

    :raise ProviderError: when a provider does not accept a refresh token
    """
    given = _given(environment)
    return [
        _account(name, given, there, seconds)
        for name, names in ACCOUNT.items()
        if all(each in given for each in names)
    ]


def _given(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(PREFIX): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and value
    }


def _account(name: str, given: Mapping[str, str], there: ProviderSettings, seconds: float) -> LiveAccount:
    client_id, client_secret, refresh_token = (given[each] for each in ACCOUNT[name])
    client = Client(client_id, Token(client_secret))
    endpoints: GoogleEndpoints | MicrosoftEndpoints
    oauth: OAuth
    if name == GOOGLE:
        endpoints = GoogleEndpoints(
            api=there.google_api_url,
            auth=there.google_auth_url,
            token=there.google_token_url,
            revoke=there.google_revoke_url,
            userinfo=there.google_userinfo_url,
            directory=there.google_directory_url,
        )
        oauth = GoogleOAuth(endpoints, client)
    else:
        endpoints = MicrosoftEndpoints(
            graph=there.microsoft_graph_url,
            login=there.microsoft_login_url,
            tenant=given.get("MICROSOFT_TENANT", "common"),
        )
        oauth = MicrosoftOAuth(endpoints, client)
    tokens = RefreshedTokens(oauth, Token(refresh_token))
    # The scopes are known with the first token.
    tokens.access_token(deadline=time.monotonic() + seconds)
    grant, member = None, ""
    if all(each in given for each in GRANT[name]):
        member = given[f"{name.upper()}_GRANT_MEMBER"]
        scopes = DELEGATED_SCOPES if name == GOOGLE else frozenset({"Calendars.ReadBasic.All"})
        grant = Account(member, scopes, GrantTokens(endpoints, given))
    push = None
    if all(each in given for each in PUSH):
        push = Push(given["PUSH_URL"], int(given["PUSH_PORT"]))
    return LiveAccount(
        name,
        endpoints,
        oauth,
        Account(None, tokens.scope, tokens),
        given.get(CALENDAR[name], "primary"),
        grant,
        member,
        push,
    )
