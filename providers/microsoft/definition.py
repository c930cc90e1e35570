"""The definition of Microsoft 365."""

from __future__ import annotations

from collections.abc import Mapping

from providers.base import IssuedTokens, Token
from providers.definition import ConsentGuide, Definition, GrantCredential, GrantGuide, Provider
from providers.microsoft import organization_grants
from providers.microsoft.client import Costs, Microsoft
from providers.microsoft.errors import PROVIDER
from providers.microsoft.oauth import MicrosoftEndpoints, MicrosoftOAuth
from providers.microsoft.scopes import SCOPES
from providers.microsoft.subscriptions import MicrosoftSubscriptions
from providers.oauth.client import Client


class Applications:
    """Tokens of applications in tenants: the organization's own, or the one of this installation."""

    def __init__(self, endpoints: MicrosoftEndpoints, ours: Client) -> None:
        self._endpoints = endpoints
        self._ours = ours

    def token(self, grant: GrantCredential, subject: str | None, *, deadline: float) -> IssuedTokens:
        """An access token for every mailbox of the tenant."""
        client = self._ours
        if grant.client_id is not None and grant.secret is not None:
            client = Client(grant.client_id, Token(grant.secret))
        return organization_grants.token(self._endpoints, grant.tenant or "", client, deadline=deadline)


def bind(own: Mapping[str, str]) -> Provider:
    """Microsoft 365 as an installation's settings describe it."""
    endpoints = MicrosoftEndpoints(graph=own["graph_url"], login=own["login_url"], tenant=own["tenant"])
    client = Client(own["client_id"], Token(own["client_secret"]))
    return Provider(
        calendars=Microsoft(endpoints),
        channels=MicrosoftSubscriptions(endpoints),
        oauth=MicrosoftOAuth(endpoints, client),
        grants=Applications(endpoints, client),
        configured=client.complete,
        hosts=(endpoints.graph, endpoints.login),
        consent_page=endpoints.login,
    )


DEFINITION = Definition(
    name="microsoft",
    title="Microsoft",
    service=PROVIDER,
    scopes=SCOPES,
    costs=Costs(),
    bind=bind,
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
        has_tenant=True,
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
)
