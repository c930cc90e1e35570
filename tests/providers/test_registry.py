"""The providers of an installation."""

from __future__ import annotations

import pytest

from providers import registry
from providers.microsoft.oauth import MicrosoftEndpoints
from store.cache.cache_tags import GLOBAL_IDS

URL = "http://127.0.0.1:1"


@pytest.mark.parametrize("name", registry.with_consent())
def test_a_provider_is_configured_with_an_oauth_client(name, settings):
    own = settings.providers.of(name)
    assert registry.definition(name).bind(own).configured
    bare = registry.definition(name).bind(own | {"client_id": ""})
    assert not bare.configured
    assert bare.calendars.name == name


def test_the_store_knows_whose_calendar_ids_are_global():
    assert {name for name in registry.names() if registry.definition(name).global_ids} == GLOBAL_IDS


def test_the_tenant_is_part_of_microsofts_addresses():
    endpoints = MicrosoftEndpoints(graph=URL, login=f"{URL}/login", tenant="contoso")
    assert endpoints.token == f"{URL}/login/contoso/oauth2/v2.0/token"
    assert endpoints.auth == f"{URL}/login/contoso/oauth2/v2.0/authorize"
