"""What commands share: the data folder, settings, and becoming another program."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from store.config.settings import Settings, read_settings

PORT = 8080
FLOWER_PORT = 5555

Command = TypeVar("Command", bound=Callable[..., Any])


def data_option(command: Command) -> Command:
    """``--data``, for commands that read settings."""
    return click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        help="Data folder of the embedded default (ALMANAC_DATA_DIR).",
    )(command)


def settings(data: Path | None) -> Settings:
    """The settings, of the embedded default in ``data`` if that is given."""
    if data is not None:
        # The processes that we start read it too.
        os.environ["ALMANAC_DATA_DIR"] = str(data)
    return read_settings(data)


def become(command: list[str], environment: Mapping[str, str] = os.environ) -> None:
    """Let this process be the command, so that signals reach it."""
    os.execve(command[0], command, dict(environment))
