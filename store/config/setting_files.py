"""Settings in files, as containers are given their secrets: ``ALMANAC_..._FILE`` names the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PREFIX = "ALMANAC_"
SUFFIX = "_FILE"


class UnreadableFile(ValueError):
    """A file is not there, says nothing, or competes with the variable itself; the message names both."""


def check(environment: Mapping[str, str]) -> None:
    """See to it that each file can be read and says something.

    An empty one would count as "not set", and without an address of the database that is the embedded one.

    :raise UnreadableFile: for the first that is wrong
    """
    for name, path in environment.items():
        if path and name.startswith(PREFIX) and name.endswith(SUFFIX):
            _check(name, Path(path), environment)


def _check(name: str, path: Path, environment: Mapping[str, str]) -> None:
    setting = name.removesuffix(SUFFIX)
    if environment.get(setting):
        raise UnreadableFile(f"{setting} and {name} are both set: remove one of them")
    try:
        text = path.read_text()
    except OSError as error:
        raise UnreadableFile(f"{name}: {path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{name}: {path} is not text") from error
    if not text.strip():
        raise UnreadableFile(f"{name}: {path} is empty")
    if "\n" in text.strip():
        raise UnreadableFile(f"{name}: {path} must hold the value alone, on one line")
