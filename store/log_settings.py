"""How a process logs: read before every other setting, so that their faults are logged alike."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from environs import Env

from store.settings import SettingsError

Word = TypeVar("Word", bound=str)
Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]

# What starts other processes hands the level on to them.
LEVEL = "ALMANAC_LOG_LEVEL"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """``level`` is one of the numbers of the standard library."""

    format: Format = "text"
    level: int = logging.WARNING


def read_log_settings() -> LogSettings:
    """Read the environment.

    :raise SettingsError: naming the variable that is malformed
    """
    env = Env()
    with env.prefixed("ALMANAC_"):
        form: str = env.str("LOG_FORMAT", "") or "text"
        level: str = env.str("LOG_LEVEL", "") or "warning"
    return LogSettings(
        _one_of("ALMANAC_LOG_FORMAT", form, get_args(Format)),
        logging.getLevelNamesMapping()[_one_of(LEVEL, level, get_args(Level)).upper()],
    )


def _one_of(name: str, written: str, words: tuple[Word, ...]) -> Word:
    for word in words:
        if word == written.lower():
            return word
    raise SettingsError(f"{name} must be one of {', '.join(words)}")
