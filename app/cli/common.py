"""Shared by the commands: the ``--data`` option, settings, and replacing this process by another program."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from store.config.declaration import Network
from store.config.setting import read
from store.config.settings import Settings, empty_data_dir
from workers.settings import read_settings

PORT = 8080
FLOWER_PORT = 5555

START_OR_NAME = (
    "start almanac up in this folder, or name the data folder of the one that runs: --data. If "
    "it has a database of its own, set its variables here too, ALMANAC_DATABASE_URL and the others"
)

Command = TypeVar("Command", bound=Callable[..., Any])


def data_option(command: Command) -> Command:
    """Add ``--data`` to a command that reads settings."""
    return click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        help="Data folder of the embedded default (ALMANAC_DATA_DIR).",
    )(command)


def host_option(command: Command) -> Command:
    """Add ``--host`` to a command that listens; its value is the setting if the option is not given."""
    return click.option(
        "--host",
        callback=lambda _, __, value: value or read(Network).host,
        help="The address to listen on (ALMANAC_HOST, 127.0.0.1).",
    )(command)


def settings(data: Path | None) -> Settings:
    """The settings; ``data`` is the data folder of the embedded default."""
    if data is not None:
        # Processes that this one starts read the variable.
        os.environ["ALMANAC_DATA_DIR"] = str(data)
    return read_settings(data)


def installed(data: Path | None) -> Settings:
    """``settings`` of an installation that exists: ``settings`` alone makes secrets in a new folder.

    :raise click.ClickException: when nothing was started in the data folder yet
    """
    if (empty := empty_data_dir(data)) is not None:
        raise click.ClickException(f"There is no installation in {empty} yet: {START_OR_NAME}")
    return settings(data)


def become(command: list[str], environment: Mapping[str, str] = os.environ) -> None:
    """Replace this process by the command, so that signals reach it directly."""
    os.execve(command[0], command, dict(environment))
