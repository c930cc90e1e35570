"""The machine of a run, and the versions of the software that matters."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from redis import Redis

ROOT = Path(__file__).parents[2]
PACKAGES = ("numpy", "flask", "granian", "celery", "redis", "sqlalchemy", "orjson", "marshmallow")
PACKAGES += ("slotify-scheduling",)


def described(connection: Redis, database: str) -> list[str]:
    """The machine and the versions, in Markdown."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    server = connection.info("server")
    valkey = server.get("valkey_version")
    redis = f"Valkey {valkey}" if valkey else f"Redis {server['redis_version']}"
    system = f"{platform.system()} {platform.release()}"
    return [
        f"{_processor()}, {os.cpu_count()} processors, {_memory()}; {system}.",
        f"Python {platform.python_version()}, {redis}, {database}; {packages}.",
    ]


def stamp() -> str:
    """When this was, and of which commit."""
    return f"Measured on {datetime.now(UTC):%Y-%m-%d} at {_commit()}."


def _commit() -> str:
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        return f"{commit} with changes" if _git("status", "--porcelain", "--", "*.py") else commit
    except (OSError, subprocess.CalledProcessError):
        return "an unknown commit"


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{total / 2**30:.0f} GiB"
