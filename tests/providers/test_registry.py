"""The providers of an installation."""

from __future__ import annotations

import os
import subprocess
import sys

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


GOOD = """
from providers.definition import Definition, Field, FormGuide, OwnSetting
from providers.scopes import Level, one_scope
def made(name="diary", field="url", **more):
    form = FormGuide("feed", (Field(field, "Address", "url"),))
    scopes = one_scope("read", Level.FREE_BUSY)
    return Definition(name, "Diary", "Diary", scopes, bind=print, form=form, **more)
"""
WRONG = {
    "import nowhere": "diary (almanac.providers: diary) cannot be loaded: No module named 'nowhere'",
    "D = 'diary'": "diary (almanac.providers: diary) names no providers.definition.Definition",
    "D = made('google')": "brings a provider google, and there is one of this name",
    "D = made('my_diary')": "'my_diary' must be at most 16 of a to z and 0 to 9",
    "D = made('d' * 17)": "must be at most 16 of a to z and 0 to 9",
    "D = made(field='label')": "The form of diary has a field label, which every account has",
    "D = made(settings=(OwnSetting('port', 1, 'The port', is_url=True),))": "The setting port is no text",
    "D = made(global_ids=True)": "diary: global_ids and store.cache.cache_tags.GLOBAL_IDS differ",
}


def start_with(text, folder):
    """Load the settings and the schemas in a process for which a package ``diary`` is installed."""
    (folder / "diary.py").write_text(GOOD + text)
    facts = folder / "diary-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: diary\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[almanac.providers]\ndiary = diary:D\n")
    program = "import workers.settings, app.schemas.connection_forms as forms; forms.account_body()"
    return subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("text", WRONG)
def test_a_package_whose_provider_cannot_be_used_is_named(tmp_path, text):
    ended = start_with(text, tmp_path)

    assert ended.returncode == 1
    assert WRONG[text] in ended.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_package_brings_a_provider(tmp_path):
    checked = "OwnSetting('url', 'http://a', 'The address', is_url=True, check=lambda text: text)"
    ended = start_with(f"D = made(settings=({checked},))", tmp_path)

    assert ended.returncode == 0, ended.stderr
