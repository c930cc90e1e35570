"""The providers of an installation."""

from __future__ import annotations

from providers import registry
from providers.base import Token
from providers.oauth.endpoints import Client, MicrosoftEndpoints
from providers.registry import providers
from tests.providers.addresses import google_at, microsoft_at

URL = "http://127.0.0.1:1"


def test_registry_has_both_providers_with_configured_flag():
    nobody = Client("", Token(""))
    found = providers(google_at(URL), Client("id", Token("secret")), microsoft_at(URL), nobody)
    assert tuple(found) == registry.names()
    assert {name: each.configured for name, each in found.items()} == {"google": True, "microsoft": False}
    assert all(found[name].calendars.name == name for name in registry.names())


def test_the_tenant_is_part_of_microsofts_addresses():
    endpoints = MicrosoftEndpoints(graph=URL, login=f"{URL}/login", tenant="contoso")
    assert endpoints.token == f"{URL}/login/contoso/oauth2/v2.0/token"
    assert endpoints.auth == f"{URL}/login/contoso/oauth2/v2.0/authorize"
