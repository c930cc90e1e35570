"""Prints diagnoses: a line for each part as soon as it is checked, or one JSON document at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import orjson

from app.cli.doctor import CheckState, Diagnosis, environment, examine
from store.config.settings import Settings, SettingsError, empty_data_dir

Say = Callable[[str], object]

_ELSEWHERE = (
    "Run this command in the folder in which almanac up was started, or name its data folder: --data. "
    "If it has a database of its own, set its variables here too, ALMANAC_DATABASE_URL and the others"
)

WIDEST_STATE = max(len(state) for state in CheckState)
WIDEST_NAME = len("redis persistence")


def report(read: Callable[[], Settings], say: Say, *, as_json: bool, data_dir: Path | None = None) -> bool:
    """Diagnose the installation whose settings ``read`` returns; returns whether nothing is wrong.

    ``data_dir`` is the folder of the embedded default, as for ``read_settings``.
    """
    found = []
    for diagnosis in _examined(read, data_dir):
        found.append(diagnosis)
        if not as_json:
            _say(diagnosis, say)
    healthy = not any(each.state is CheckState.WRONG for each in found)
    if as_json:
        document = {"healthy": healthy, "checks": [asdict(each) for each in found]}
        say(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    return healthy


def _examined(read: Callable[[], Settings], data_dir: Path | None) -> Iterator[Diagnosis]:
    yield Diagnosis("version", *environment.versions())
    try:
        # To read the settings would create secrets in an empty folder.
        if (empty := empty_data_dir(data_dir)) is not None:
            yield Diagnosis("settings", CheckState.WRONG, f"There is no installation in {empty}", _ELSEWHERE)
            return
        settings = read()
    except SettingsError as error:
        advice = "docs/reference/settings.md has every setting; almanac keys secrets prints fresh secrets"
        yield Diagnosis("settings", CheckState.WRONG, str(error), advice)
        return
    yield Diagnosis("settings", *environment.settings(os.environ))
    yield from examine(settings)


def _say(diagnosis: Diagnosis, say: Say) -> None:
    say(f"{diagnosis.state:<{WIDEST_STATE}}  {diagnosis.name:<{WIDEST_NAME}}  {diagnosis.sentence}")
    if diagnosis.advice:
        say(f"{'':<{WIDEST_STATE}}  {'':<{WIDEST_NAME}}  -> {diagnosis.advice}")
