"""The definition of Microsoft 365."""

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
from providers.event_writes import ALL_SHOWN, EventFields
from providers.events import Visibility
from providers.microsoft import PARTS_PER_BATCH, certificates
from providers.microsoft.errors import PROVIDER
from providers.microsoft.recurrence import require_pattern
from providers.microsoft.scopes import SCOPES


def bind(own: Mapping[str, Any]) -> Provider:
    """Microsoft 365 as an installation's settings describe it."""
    # The adapter and its libraries are loaded by the processes that call Microsoft.
    from providers.microsoft.client import Microsoft
    from providers.microsoft.directory import MicrosoftDirectory
    from providers.microsoft.oauth import MicrosoftEndpoints, MicrosoftOAuth
    from providers.microsoft.organization_grants import Applications
    from providers.microsoft.subscriptions import MicrosoftSubscriptions
    from providers.oauth.client import Client

    endpoints = MicrosoftEndpoints(graph=own["graph_url"], login=own["login_url"], tenant=own["tenant"])
    client = Client(own["client_id"], Token(own["client_certificate"] or own["client_secret"]))
    calendars = Microsoft(endpoints)
    return Provider(
        calendars=calendars,
        writes=calendars,
        changes=calendars,
        members=calendars,
        channels=MicrosoftSubscriptions(endpoints),
        oauth=MicrosoftOAuth(endpoints, client),
        grants=Applications(endpoints, client),
        directory=MicrosoftDirectory(endpoints.graph),
        configured=client.complete,
    )


SETTINGS = (
    *client_settings("Microsoft"),
    OwnSetting(
        "client_certificate",
        "",
        "A certificate and its private key (RSA) as PEM, with which the client proves itself instead of a "
        "secret. Upload the certificate at Microsoft under Certificates & secrets",
        secret=True,
        lines=True,
        check=certificates.checked,
    ),
    OwnSetting(
        "tenant",
        "common",
        "The tenant whose users can sign in at Microsoft. A tenant saved in the dashboard takes precedence",
    ),
    OwnSetting(
        "graph_url", "https://graph.microsoft.com/v1.0", "The base URL of Microsoft Graph", is_url=True
    ),
    OwnSetting(
        "login_url",
        "https://login.microsoftonline.com",
        "The base URL of Microsoft's consent page and token endpoint",
        is_url=True,
    ),
    OwnSetting(
        "per_mailbox",
        10_000,
        "Microsoft's quota for each mailbox: calls in any ten minutes. Microsoft's other limits are built "
        "in: 130 000 calls in ten seconds for the app, four concurrent calls for each mailbox",
        minimum=2,
    ),
)


def quotas(own: Mapping[str, Any]) -> Quotas:
    """One app across all tenants, and a mailbox: https://learn.microsoft.com/en-us/graph/throttling-limits"""
    return Quotas(CallQuota(130_000, 10), CallQuota(own["per_mailbox"], 600))


DEFINITION = Definition(
    name="microsoft",
    title="Microsoft",
    service=PROVIDER,
    scopes=SCOPES,
    # Each part of a batch counts as one call. Each batch, and the list, has one for the zone of the mailbox.
    # For an event: the event, the zone, and the body as HTML.
    costs=Costs(
        listing=2,
        main_calendar=2,
        event=3,
        zone=1,
        calendars_of_events=PARTS_PER_BATCH - 1,
        calendars_of_members=PARTS_PER_BATCH,
    ),
    bind=bind,
    settings=SETTINGS,
    quotas=quotas,
    hosts=("graph_url", "login_url"),
    consent=ConsentGuide(
        console="https://entra.microsoft.com/#view/Microsoft_AAD_RegisteredApps/ApplicationsListBlade",
        steps=(
            "In the Microsoft Entra admin center, register an application for the accounts that you want to "
            "connect.",
            "Give it the redirect URL below as platform Web, and the scopes as delegated permissions of "
            "Microsoft Graph.",
            "Make a client secret, and copy its Value, the Application (client) ID and the Directory "
            "(tenant) ID into the form.",
        ),
        page="login_url",
        has_tenant=True,
        proves_secret=False,
    ),
    grant=GrantGuide(
        steps=(
            "In the Microsoft Entra admin center, register an application, or use the registration of this "
            "installation.",
            "Add application permissions of Microsoft Graph: MailboxSettings.Read, and "
            "Calendars.ReadBasic.All, Calendars.Read or Calendars.ReadWrite. Then grant admin consent.",
            "For an application of your own, make a client secret and copy its Value, not its Secret ID.",
        ),
        impersonates=False,
    ),
    leases=True,
    # An event has one reminder, and no sensitivity that makes it public:
    # https://learn.microsoft.com/en-us/graph/api/resources/event#properties
    event_fields=EventFields(
        show_as=ALL_SHOWN,
        visibility=(Visibility.DEFAULT, Visibility.PRIVATE),
        reminders=1,
        recurrence=require_pattern,
    ),
)
