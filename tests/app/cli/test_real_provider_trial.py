"""The quick start's trial with a real provider, with the sandbox as the provider."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from app.server.supervisor import sandbox_environment
from tests.app.cli.test_commands import ALMANAC, clean_environment
from tests.docs.fences import ROOT, blocks
from tests.installation.processes import STOP_SECONDS, free_port, ready
from tests.waiting import until

QUICKSTART = ROOT / "docs/start/quickstart.md"
START, CONNECT = (
    block.text
    for block in blocks(QUICKSTART)
    if block.info.get("reason") == "tests/app runs it: the try-out with Microsoft"
)
(REDIRECT_URL,) = re.findall(r"http://localhost:8080/v1/oauth/microsoft/callback", QUICKSTART.read_text())


@pytest.mark.long
def test_account_connects_through_the_registered_redirect_url(sandbox, tmp_path: Path):
    sandbox.account("microsoft", "lee@contoso.example")
    port = free_port()
    # Microsoft's URL. The documented command sets the registration.
    there = {
        name: value
        for name, value in sandbox_environment(sandbox.url).items()
        if name in ("ALMANAC_MICROSOFT_GRAPH_URL", "ALMANAC_MICROSOFT_LOGIN_URL")
    }
    environment = clean_environment(ALMANAC_DATA_DIR=str(tmp_path), **there)
    environment["PATH"] = f"{ALMANAC.parent}:{environment['PATH']}"

    def written(text: str) -> str:
        text = text.replace(".venv/bin/almanac up", f"exec almanac up --port {port}")
        return text.replace(".venv/bin/almanac", "almanac").replace("8080", str(port)).replace("…", "sandbox")

    everything = subprocess.Popen(["bash", "-c", written(START)], env=environment)
    try:
        until(lambda: everything.poll() is not None or ready(f"http://127.0.0.1:{port}"), patience=90)
        assert everything.poll() is None, "it ended by itself"
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", written(CONNECT)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.returncode == 0, ran.stderr
        link = ran.stdout.splitlines()[-1]

        (redirect_url,) = parse_qs(urlsplit(link).query)["redirect_uri"]
        assert redirect_url == written(REDIRECT_URL)
        # The browser, which the provider redirects to that address.
        with requests.Session() as browser:
            browser.trust_env = False
            back = browser.get(f"{link}&login_hint=lee@contoso.example", timeout=30)
        assert (back.status_code, urlsplit(back.url).netloc) == (200, f"localhost:{port}")
    finally:
        everything.terminate()
        assert everything.wait(timeout=STOP_SECONDS) == 0
