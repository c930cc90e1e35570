"""The settings of Flower's process: the broker and the sign-in, and no secret of the installation."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from environs import FileAwareEnv

from store.config import service_urls, setting_files
from store.config.settings import SettingsError, socket_path


@dataclass(frozen=True, slots=True)
class FlowerSettings:
    """What Flower runs with."""

    broker_url: str = field(repr=False)
    flower_user: str
    flower_password: str = field(repr=False)


def read_flower_settings(data_dir: Path | None = None) -> FlowerSettings:
    """Read the environment. The secret key, the encryption keys and the database are not needed.

    :raise SettingsError: for a file that cannot be read, or an address that is none of a broker
    """
    try:
        setting_files.check(os.environ)
    except setting_files.UnreadableFile as error:
        raise SettingsError(str(error)) from error
    env = FileAwareEnv(strip_whitespace=True)
    with env.prefixed("ALMANAC_"):
        folder = data_dir or Path(env.str("DATA_DIR", "") or ".almanac")
        address = env.str("BROKER_URL", "") or env.str("REDIS_URL", "") or f"unix://{socket_path(folder)}"
        return FlowerSettings(
            broker_url=_broker(address),
            flower_user=env.str("FLOWER_USER", "") or "almanac",
            flower_password=env.str("FLOWER_PASSWORD", ""),
        )


def _broker(address: str) -> str:
    try:
        return service_urls.broker(address)
    except service_urls.BadURL as error:
        raise SettingsError(str(error)) from error
