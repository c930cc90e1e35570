"""The receivers of webhooks in the guide verify and print a test event of a running installation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.almanac_typescript.conftest import run
from tests.almanac_typescript.types import PACKAGE
from tests.conftest import Api
from tests.docs.fences import ROOT, Block, blocks
from tests.docs.shell import Shell
from tests.installation.processes import free_port, listens, web_server
from tests.waiting import until

GUIDE = "docs/guides/webhooks.md"
LINE = re.compile(r"^webhook\.test .+\n", re.MULTILINE)


def block(reason: str, language: str) -> Block:
    """The block of the guide that is left to these tests, by the end of its reason."""
    (found,) = [
        each
        for each in blocks(ROOT / GUIDE)
        if each.language == language and each.info.get("reason", "").endswith(reason)
    ]
    return found


@pytest.fixture(scope="session")
def base_url(environment: dict[str, str], database: object, worker: None) -> Iterator[str]:
    """The URL of a web server that delivers to private addresses too."""
    with web_server(environment, count=1) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def delivered(base_url: str, new_api: Callable[..., Api], tmp_path: Path) -> Callable[..., str]:
    """Follow the guide with a receiver, and return the line that it prints about the test event."""

    def follow(command: list[str]) -> str:
        port = free_port()
        own = {"URL": base_url, "KEY": new_api().key, "PORT": str(port), "NO_PROXY": "*"}
        shell = Shell(tmp_path, {"http://127.0.0.1:9000": f"http://127.0.0.1:{port}"}, os.environ | own)
        registered, statuses = shell.run(block("runs it: register", "sh"))
        assert statuses == [201]
        webhook = json.loads(registered)["data"]

        printed = tmp_path / "printed"
        environment = os.environ | own | {"ALMANAC_WEBHOOK_SECRET": webhook["secret"]}
        with printed.open("wb") as output:
            receiver = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=output, stderr=output)
        try:
            until(lambda: listens(port) or receiver.poll() is not None)
            send = block("runs it: test", "sh")
            sending = Block(send.document, send.line, "sh", {}, f"WEBHOOK={webhook['id']}\n{send.text}")
            _, statuses = shell.run(sending)
            assert statuses == [200]
            # A whole line: the receiver may write its words one by one.
            line = until(lambda: LINE.search(printed.read_text()) or receiver.poll() is not None)
            assert isinstance(line, re.Match), printed.read_text()
            return line[0]
        finally:
            receiver.kill()
            receiver.wait()

    return follow


def test_the_start_names_the_saved_file():
    assert block("runs it: start", "sh").text.endswith(".venv/bin/python receiver.py")


@pytest.mark.slow
def test_the_receiver_in_python_prints_the_test_event(delivered, tmp_path: Path):
    (tmp_path / "receiver.py").write_text(block("runs it", "python").text)

    assert delivered([sys.executable, "receiver.py"])


@pytest.mark.typescript
def test_the_receiver_in_node_prints_the_test_event(delivered, tmp_path: Path):
    run(PACKAGE / "node_modules/.bin/tsc", "-p", "tsconfig.json", cwd=PACKAGE)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/almanac-client").symlink_to(PACKAGE)
    (tmp_path / "receiver.mjs").write_text(block("runs it", "js").text)

    assert delivered(["node", "receiver.mjs"])
