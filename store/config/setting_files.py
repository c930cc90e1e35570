"""Files with the values of settings, as containers receive secrets: ``ALMANAC_..._FILE`` names the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from store.config.setting import FILE_SUFFIX, PREFIX, SettingsError


class UnreadableFile(SettingsError):
    """A file is missing, empty or malformed, or its setting has a variable too. The message names both."""


def check(environment: Mapping[str, str]) -> None:
    """Check that each file can be read and holds a value.

    Otherwise an empty file would count as "not set", and without a database URL the embedded database is
    used.

    :raise UnreadableFile: for the first file that fails a check
    """
    for name, path in environment.items():
        if path and name.startswith(PREFIX) and name.endswith(FILE_SUFFIX):
            _check(name, Path(path), environment)


def _check(name: str, path: Path, environment: Mapping[str, str]) -> None:
    setting = name.removesuffix(FILE_SUFFIX)
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
        raise UnreadableFile(f"{name}: {path} must hold only the value, on one line")
