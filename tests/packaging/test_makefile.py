"""The environment that `make setup` passes to its tools."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.files import ROOT

SHOW = "show:\n\t@printenv UV_SYSTEM_CERTS\n"


@pytest.mark.parametrize(("chosen", "handed_on"), [(None, "1"), ("0", "0")])
def test_uv_trusts_the_system_certificates_by_default(chosen, handed_on):
    environment = {name: value for name, value in os.environ.items() if name != "UV_SYSTEM_CERTS"}
    if chosen is not None:
        environment["UV_SYSTEM_CERTS"] = chosen

    shown = subprocess.run(
        ["make", "--no-print-directory", "-f", "Makefile", "-f", "-", "show"],
        cwd=ROOT,
        env=environment,
        input=SHOW,
        capture_output=True,
        text=True,
        check=True,
    )

    assert shown.stdout == f"{handed_on}\n"


def test_the_pinned_uv_knows_that_variable():
    uv = Path(sys.executable).parent / "uv"
    told = subprocess.run([uv, "pip", "install", "--help"], capture_output=True, text=True, check=True)

    assert "env: UV_SYSTEM_CERTS=" in told.stdout
