"""Log format and level. They are read before every other setting, so that errors in those are logged too."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import Literal, cast

from store.config import declaration, setting_files
from store.config.setting import Setting, SettingsError, Values

Format = Literal["text", "json"]

# A process that starts others passes the level on in this variable.
LEVEL = declaration.LOG_LEVEL.name


@dataclass(frozen=True, slots=True)
class LogSettings:
    """``level`` is one of the numbers of the standard library."""

    format: Format = "text"
    level: int = logging.WARNING


def read_log_settings() -> LogSettings:
    """Read the environment. Each variable can name a file instead, as for other settings.

    :raise SettingsError: naming the variable that is malformed, or whose file cannot be read
    """
    settings = (declaration.LOG_FORMAT, declaration.LOG_LEVEL)
    # Files of other settings are not checked here: `almanac keys secrets` starts before it writes them.
    names = {name for setting in settings for name in (setting.name, setting.file_variable)}
    setting_files.check({name: value for name, value in os.environ.items() if name in names})
    values = Values(settings)
    return LogSettings(
        cast(Format, _choice(declaration.LOG_FORMAT, values)),
        logging.getLevelNamesMapping()[_choice(declaration.LOG_LEVEL, values).upper()],
    )


def _choice(setting: Setting[str], values: Values) -> str:
    value = values[setting].lower()
    if value not in setting.choices:
        raise SettingsError(f"{setting.name} must be one of {', '.join(setting.choices)}")
    return value
