"""How a process logs: read before every other setting, so that their faults are logged alike."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from environs import FileAwareEnv

from store.config import setting_files
from store.config.settings import SettingsError

Word = TypeVar("Word", bound=str)
Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]

FORMAT = "ALMANAC_LOG_FORMAT"
# What starts other processes hands the level on to them.
LEVEL = "ALMANAC_LOG_LEVEL"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """``level`` is one of the numbers of the standard library."""

    format: Format = "text"
    level: int = logging.WARNING


def read_log_settings() -> LogSettings:
    """Read the environment. Each variable may name a file instead, as other settings do.

    :raise SettingsError: naming the variable that is malformed, or whose file cannot be read
    """
    names = {each for name in (FORMAT, LEVEL) for each in (name, name + setting_files.SUFFIX)}
    try:
        setting_files.check({name: value for name, value in os.environ.items() if name in names})
    except setting_files.UnreadableFile as error:
        raise SettingsError(str(error)) from error
    env = FileAwareEnv(strip_whitespace=True)
    with env.prefixed("ALMANAC_"):
        form: str = env.str("LOG_FORMAT", "") or "text"
        level: str = env.str("LOG_LEVEL", "") or "warning"
    return LogSettings(
        _one_of(FORMAT, form, get_args(Format)),
        logging.getLevelNamesMapping()[_one_of(LEVEL, level, get_args(Level)).upper()],
    )


def _one_of(name: str, written: str, words: tuple[Word, ...]) -> Word:
    for word in words:
        if word == written.lower():
            return word
    raise SettingsError(f"{name} must be one of {', '.join(words)}")
