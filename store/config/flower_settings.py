"""The settings of Flower's process: the broker and the sign-in, but no secret of the installation."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from store.config import declaration, service_urls, setting_files
from store.config.setting import Values
from store.config.settings import socket_path


@dataclass(frozen=True, slots=True)
class FlowerSettings:
    """The broker and the sign-in."""

    broker_url: str = field(repr=False)
    flower_user: str
    flower_password: str = field(repr=False)


def read_flower_settings(data_dir: Path | None = None) -> FlowerSettings:
    """Read the environment. The secret key, the encryption keys and the database are not needed.

    :raise SettingsError: for a file that cannot be read, or a URL that no broker has
    """
    setting_files.check(os.environ)
    values = Values(
        (
            declaration.DATA_DIR,
            declaration.REDIS_URL,
            declaration.BROKER_URL,
            declaration.FLOWER_USER,
            declaration.FLOWER_PASSWORD,
        )
    )
    folder = data_dir or Path(values[declaration.DATA_DIR])
    url = values[declaration.BROKER_URL] or values[declaration.REDIS_URL] or f"unix://{socket_path(folder)}"
    return FlowerSettings(
        broker_url=service_urls.broker(url),
        flower_user=values[declaration.FLOWER_USER],
        flower_password=values[declaration.FLOWER_PASSWORD],
    )
