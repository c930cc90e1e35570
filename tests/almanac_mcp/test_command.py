"""The command ``almanac-mcp`` on a machine that lacks something."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

pytestmark = pytest.mark.slow

# Stands for an environment without the extra: nothing below ``mcp`` can be imported.
WITHOUT_THE_EXTRA = "import sys; sys.modules['mcp'] = None; from almanac_mcp.command import main; main()"
INSTALLED = "from almanac_mcp.command import main; main()"


def run(code: str, environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """The ended command."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(
        command, env={**clean, **environment}, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("code", "environment", "words", "said"),
    [
        (WITHOUT_THE_EXTRA, {"ALMANAC_API_KEY": "alm_secret"}, [], "pip install 'almanac-client[mcp]'"),
        (INSTALLED, {}, [], "Set ALMANAC_API_KEY"),
        (INSTALLED, {"ALMANAC_API_KEY": "alm_secret", "ALMANAC_URL": "somewhere"}, [], "https://"),
        (INSTALLED, {"ALMANAC_API_KEY": "alm_secret"}, ["--url", "somewhere"], "https://"),
    ],
)
def test_what_is_missing_is_one_sentence(code, environment, words, said):
    ended = run(code, environment, *words)

    assert ended.returncode == 1
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "alm_secret" not in ended.stderr
    assert ended.stdout == ""


def test_the_help_needs_no_extra():
    ended = run(WITHOUT_THE_EXTRA, {}, "--help")

    assert ended.returncode == 0
    assert "--url" in ended.stdout
