"""``make release-rehearsal``: the steps of a user with a release, outside of the repository.

It builds the wheel, installs it into an empty environment in an empty folder, starts the demo there, and runs
the ``curl`` line that the demo prints. The index chooses the packages, as for a user.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.installation.processes import free_port
from tests.packaging.files import ROOT

UV = str(Path(sys.executable).parent / "uv")
# From the start of the demo to its first slots.
SECONDS = 60.0


class Failed(Exception):
    """A step of the rehearsal, with what it printed."""


def run(*command: str, folder: Path, **ours: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder, without the settings and the packages of this process."""
    return subprocess.run(
        command, cwd=folder, env=_environment(ours), capture_output=True, text=True, check=False
    )


def build(folder: Path) -> Path:
    """The wheel of this checkout, in a folder."""
    _done(
        run(
            UV,
            "build",
            "--wheel",
            "--quiet",
            "--python",
            sys.executable,
            "--out-dir",
            str(folder),
            folder=ROOT,
        )
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path, *options: str) -> Path:
    """Install a wheel into a new environment in a folder; returns its ``almanac``."""
    python = folder / "environment/bin/python"
    _done(run(UV, "venv", "--quiet", "--python", sys.executable, str(python.parents[1]), folder=folder))
    command = [UV, "pip", "install", "--quiet", "--python", str(python), str(wheel), *options]
    _done(run(*command, folder=folder))
    return python.with_name("almanac")


def first_slots(almanac: Path, folder: Path) -> float:
    """Start the demo in a folder, and run the line that it prints; returns the seconds until its slots.

    :raise Failed: without slots within a minute, or if the demo leaves something behind
    """
    began = time.monotonic()
    with _demo(almanac, folder) as log:
        while (line := re.search(r"curl .*?json\.tool\n", log.read_text(), re.DOTALL)) is None:
            if time.monotonic() - began > SECONDS:
                raise Failed(f"The demo is not ready after {SECONDS:.0f} s: {log.read_text()}")
            time.sleep(0.1)
        asked = run(
            "/bin/sh", "-c", f"curl() {{ command curl --noproxy '*' \"$@\"; }}; {line[0]}", folder=folder
        )
        took = time.monotonic() - began
        if not json.loads(_done(asked))["data"][0]["availableSlots"]:
            raise Failed(f"No slots: {asked.stdout}")
    return took


@contextmanager
def _demo(almanac: Path, folder: Path) -> Iterator[Path]:
    """The demo on free ports, ended by Ctrl-C; its output is in a file."""
    ports = [f"--{name}={free_port()}" for name in ("port", "sandbox-port", "booking-port")]
    log = folder / "demo.log"
    with log.open("wb") as output:
        demo = subprocess.Popen(
            [str(almanac), "demo", *ports],
            cwd=folder,
            env=_environment({}),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            yield log
        finally:
            demo.send_signal(signal.SIGINT)
            status = demo.wait(timeout=60)
    if status:
        raise Failed(f"The demo ended with status {status}: {log.read_text()}")


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The variables of this process, but for settings, and for what would let Python find the repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ALMANAC_", "PYTHON"))}
    return {**kept, **ours}


def _done(ended: subprocess.CompletedProcess[str]) -> str:
    if ended.returncode:
        raise Failed(f"{' '.join(map(str, ended.args))}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def main() -> None:
    """Rehearse, and keep the wheel in ``dist``. The argument is the tag, whose version it has."""
    expected = sys.argv[1].removeprefix("v") if sys.argv[1:] else None
    with tempfile.TemporaryDirectory(prefix="almanac-release-") as name:
        folder = Path(name)
        wheel = build(folder)
        print(f"Built {wheel.name}, {wheel.stat().st_size // 1024:,} KiB", flush=True)
        almanac = install(wheel, folder)
        version = _done(run(str(almanac), "--version", folder=folder)).split()[1]
        print(f"Installed {version} into an empty environment", flush=True)
        if expected not in (None, version):
            raise Failed(f"The version is {version}, and the tag is of {expected}")
        print(f"First slots {first_slots(almanac, folder):.0f} seconds after `almanac demo`", flush=True)
        (ROOT / "dist").mkdir(exist_ok=True)
        print(f"Kept as {shutil.copy(wheel, ROOT / 'dist')}")


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(str(failed))
