"""The deployment files, parsed for tests."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]

# ${PORT:-8080}: the value when the variable is not set.
DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


def compose() -> dict[str, Any]:
    """docker-compose.yml, its anchors resolved."""
    document: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return document


def procfile() -> dict[str, list[str]]:
    """The words of each process after ``almanac``, with the defaults of their variables."""
    lines = (line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines())
    words = {name: shlex.split(DEFAULT.sub(r"\1", command)) for name, command in lines}
    assert all(command[0] == "almanac" for command in words.values())
    return {name: command[1:] for name, command in words.items()}


def dockerfile() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, the first of which is what comes before any."""
    text = (ROOT / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    instructions = re.sub(r"\\\n\s*", "", "\n".join(lines)).split("\n")
    stages: list[list[tuple[str, str]]] = [[]]
    for each in filter(None, instructions):
        verb, _, rest = each.partition(" ")
        if verb == "FROM":
            stages.append([])
        stages[-1].append((verb, rest))
    return stages


def of(stage: list[tuple[str, str]], verb: str) -> list[str]:
    """The instructions of a stage with one verb."""
    return [rest for each, rest in stage if each == verb]
