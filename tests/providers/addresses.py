"""The addresses of both providers on one server: the sandbox or a scripted server."""

from __future__ import annotations

from providers.google.oauth import GoogleEndpoints
from providers.microsoft.oauth import MicrosoftEndpoints


def google_at(url: str) -> GoogleEndpoints:
    return GoogleEndpoints(
        api=f"{url}/calendar/v3",
        auth=f"{url}/o/oauth2/v2/auth",
        token=f"{url}/token",
        revoke=f"{url}/revoke",
        userinfo=f"{url}/userinfo",
        directory=f"{url}/admin/directory/v1",
    )


def microsoft_at(url: str) -> MicrosoftEndpoints:
    return MicrosoftEndpoints(graph=f"{url}/v1.0", login=url, tenant="common")
