"""The providers of an installation."""

from __future__ import annotations

from providers.base import ProviderName, Token
from providers.endpoints import Client, GoogleEndpoints, MicrosoftEndpoints
from providers.registry import providers


def test_both_providers_are_there_and_say_whether_they_are_configured():
    nobody = Client("", Token(""))
    found = providers(GoogleEndpoints(), Client("id", Token("secret")), MicrosoftEndpoints(), nobody)
    assert set(found) == set(ProviderName)
    assert {name: each.configured for name, each in found.items()} == {"google": True, "microsoft": False}
    assert all(found[name].calendars.name is name for name in ProviderName)


def test_the_tenant_is_part_of_microsofts_addresses():
    endpoints = MicrosoftEndpoints(tenant="contoso")
    assert endpoints.token == "https://login.microsoftonline.com/contoso/oauth2/v2.0/token"
    assert endpoints.auth == "https://login.microsoftonline.com/contoso/oauth2/v2.0/authorize"
