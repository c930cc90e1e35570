"""The version, and the settings: unknown ``ALMANAC_`` variables, and settings not at their default."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.metadata import version

from app.cli.doctor.diagnosis import CheckResult, CheckState
from store.config.setting import FILE_SUFFIX, PREFIX, raw_values, value_text
from workers.settings import SETTINGS

# Variables of clients of the API, such as `almanac mcp`.
OF_CLIENTS = frozenset({"ALMANAC_API_KEY", "ALMANAC_URL"})


def versions() -> CheckResult:
    """The version of Almanac and of Python, which a report of a fault needs."""
    return CheckState.OK, f"Almanac {version('almanac')} on Python {platform.python_version()}", ""


def settings(environment: Mapping[str, str]) -> CheckResult:
    """Check the names of the variables. Their values have been read without an error before."""
    changed = ", ".join(_changed()) or "none"
    sentence = f"Each can be read; not at their default: {changed}"
    unknown = sorted(_unknown(environment))
    if not unknown:
        return CheckState.OK, sentence, ""
    verb = "is not a setting" if len(unknown) == 1 else "are not settings"
    advice = "; ".join(_advice(name) for name in unknown)
    return CheckState.WARNING, f"{', '.join(unknown)} {verb}. {sentence}", advice


def _changed() -> Iterator[str]:
    values = raw_values(SETTINGS)
    for setting in SETTINGS:
        if (value := values[setting.name]) != setting.default:
            yield f"{setting.name} (secret)" if setting.secret else f"{setting.name}={value_text(value)}"


def _unknown(environment: Mapping[str, str]) -> Iterator[str]:
    names = {setting.name for setting in SETTINGS} | OF_CLIENTS
    for name in environment:
        if name.startswith(PREFIX) and name not in names and name.removesuffix(FILE_SUFFIX) not in names:
            yield name


def _advice(name: str) -> str:
    similar = get_close_matches(name, [setting.name for setting in SETTINGS], n=1, cutoff=0.85)
    return f"Rename {name} to {similar[0]}" if similar else f"Remove {name}, or correct its name"
