"""A reader at a terminal: pastes the blocks of a document, one after another, into the same shell."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from tests.docs.fences import ROOT, Block

SECONDS = 60

# A program that listens there does not belong to these tests.
_USUAL_PORT = re.compile(r"(127\.0\.0\.1|localhost):80[89]0\b")

# The Monday of the examples; they are run with the next Monday instead.
_MONDAY = date(2026, 11, 23)
_DAY = re.compile(r"\b2026-1[12]-\d\d")

# The status of an answer goes to standard error: the text of the examples stays as it is written.
_SETUP = """
# npx asks before it installs, and nobody is there to answer.
npm_config_yes=true
curl() {
  command curl --silent --show-error --noproxy '*' --max-time 30 \\
    --write-out '%{stderr}status=%{http_code}\\n' "$@"
}
"""


class Shell:
    """Runs blocks with the variables of earlier ones; `$URL` and `$KEY` are there from the beginning."""

    def __init__(self, folder: Path, addresses: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._state = folder / "state"
        self._addresses = addresses
        self._environment = {**environment, "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}"}

    def run(self, block: Block) -> tuple[str, list[int]]:
        """The output of a block, and the status of each of its answers."""
        command = ["bash", "-euo", "pipefail", "-c", self._script(block)]
        ran = self._call(command)
        assert ran.returncode == 0, f"{block.place} ended with {ran.returncode}: {ran.stderr}{ran.stdout}"
        return ran.stdout, [int(status) for status in re.findall(r"^status=(\d+)$", ran.stderr, re.MULTILINE)]

    def run_python(self, block: Block) -> str:
        """The output of a program, run with the variables of the shell."""
        script = f"set -a; [ ! -e '{self._state}' ] || . '{self._state}'; exec python -c \"$PROGRAM\""
        ran = self._call(["bash", "-c", script], PROGRAM=self._today(block.text))
        assert ran.returncode == 0, f"{block.place}: {ran.stderr}"
        return ran.stdout

    def _script(self, block: Block) -> str:
        before = f"set -a; [ ! -e '{self._state}' ] || . '{self._state}'; {_SETUP}"
        text = self._today(block.text).replace(".venv/bin/almanac", "almanac")
        # Another program's sandbox may listen on the usual address; the tests must not fill it.
        text = text.replace("almanac seed demo", 'almanac seed demo --sandbox-url "$SANDBOX"')
        return f"{before}\n{text}\nexport -p > '{self._state}'"

    def _call(self, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=ROOT,
            env={**self._environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def _today(self, text: str) -> str:
        for written, real in self._addresses.items():
            text = text.replace(written, real)
        assert not _USUAL_PORT.search(text), f"an example would reach what else runs on this machine: {text}"
        return _DAY.sub(lambda day: str(date.fromisoformat(day[0]) + _since()), text)


def _since() -> timedelta:
    """From the Monday of the examples to the next Monday, in whole weeks."""
    today = datetime.now(UTC).date()
    return today + timedelta(days=7 - today.weekday()) - _MONDAY
