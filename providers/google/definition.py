"""The definition of Google Calendar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.base import Token
from providers.definition import (
    CallQuota,
    ConsentGuide,
    Costs,
    Definition,
    GrantGuide,
    OwnSetting,
    Provider,
    Quotas,
    client_settings,
)
from providers.event_writes import MAX_REMINDERS, EventFields
from providers.events import ShowAs, Visibility
from providers.google import CALENDARS_PER_QUERY, RANGE_PER_QUERY
from providers.google.errors import PROVIDER
from providers.google.parse import is_same_address
from providers.google.scopes import SCOPES


def bind(own: Mapping[str, Any]) -> Provider:
    """Google as an installation's settings describe it."""
    # The adapter and its libraries are loaded by the processes that call Google.
    from providers.google.channels import GoogleChannels
    from providers.google.client import Google
    from providers.google.directory import GoogleDirectory
    from providers.google.oauth import GoogleEndpoints, GoogleOAuth
    from providers.google.organization_grants import ServiceAccounts
    from providers.oauth.client import Client

    endpoints = GoogleEndpoints(
        api=own["api_url"],
        auth=own["auth_url"],
        token=own["token_url"],
        revoke=own["revoke_url"],
        userinfo=own["userinfo_url"],
        directory=own["directory_url"],
    )
    client = Client(own["client_id"], Token(own["client_secret"]))
    calendars = Google(endpoints)
    return Provider(
        calendars=calendars,
        writes=calendars,
        changes=calendars,
        members=calendars,
        channels=GoogleChannels(endpoints),
        oauth=GoogleOAuth(endpoints, client),
        grants=ServiceAccounts(endpoints),
        directory=GoogleDirectory(endpoints.directory),
        configured=client.complete,
    )


SETTINGS = (
    *client_settings("Google"),
    OwnSetting(
        "api_url",
        "https://www.googleapis.com/calendar/v3",
        "The base URL of the Google Calendar API",
        is_url=True,
    ),
    OwnSetting(
        "auth_url", "https://accounts.google.com/o/oauth2/v2/auth", "Google's consent page", is_url=True
    ),
    OwnSetting("token_url", "https://oauth2.googleapis.com/token", "Google's token endpoint", is_url=True),
    OwnSetting(
        "revoke_url",
        "https://oauth2.googleapis.com/revoke",
        "Google's endpoint for revoking tokens",
        is_url=True,
    ),
    OwnSetting(
        "userinfo_url",
        "https://openidconnect.googleapis.com/v1/userinfo",
        "Google's endpoint for the signed-in person's email address",
        is_url=True,
    ),
    OwnSetting(
        "directory_url",
        "https://admin.googleapis.com/admin/directory/v1",
        "The base URL of Google's Directory API, which lists the people and rooms of a domain",
        is_url=True,
    ),
    # The quotas of a Google project made since May 2026. Older projects, and those whose quotas Google has
    # raised on request, have others.
    OwnSetting(
        "per_minute",
        10_000,
        "The quota of your Google project: calls in any minute, across all workers. Half of it can be "
        "used in one burst, the other half is spread over the minute. Calls over the quota wait; reads "
        "that cannot get a permit before the deadline fail with `rateLimited`",
        minimum=2,
    ),
    OwnSetting(
        "per_minute_and_user",
        600,
        "The quota of your Google project for each account: calls in any minute. Both quotas are on the "
        "quotas page of the project; older projects have other values",
        minimum=2,
    ),
)


def quotas(own: Mapping[str, Any]) -> Quotas:
    """The quotas of the project."""
    return Quotas(CallQuota(own["per_minute"], 60), CallQuota(own["per_minute_and_user"], 60))


DEFINITION = Definition(
    name="google",
    title="Google",
    service=PROVIDER,
    scopes=SCOPES,
    costs=Costs(
        calendars_per_query=CALENDARS_PER_QUERY,
        range_per_query=RANGE_PER_QUERY,
        calendars_of_events=1,
        calendars_of_members=CALENDARS_PER_QUERY,
    ),
    bind=bind,
    settings=SETTINGS,
    quotas=quotas,
    hosts=("api_url", "token_url"),
    consent=ConsentGuide(
        console="https://console.cloud.google.com/apis/credentials",
        steps=(
            "In the Google Cloud console, enable the Google Calendar API and create an OAuth client of the "
            "type Web application.",
            "Give it the redirect URL below, and add the scopes on the page Data access.",
            "Copy its client ID and its client secret into the form.",
        ),
        page="auth_url",
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
    # Google has "opaque" and "transparent" only:
    # https://developers.google.com/workspace/calendar/api/v3/reference/events#transparency
    event_fields=EventFields(
        show_as={each: ShowAs.FREE if each is ShowAs.FREE else ShowAs.BUSY for each in ShowAs},
        visibility=tuple(Visibility),
        # https://developers.google.com/workspace/calendar/api/v3/reference/events#reminders.overrides
        reminders=MAX_REMINDERS,
        default_reminders=True,
        optional_resources=True,
    ),
)
