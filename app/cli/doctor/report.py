"""Prints diagnoses: a line for each part as soon as it is checked, or one JSON document at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict

import orjson

from app.cli.doctor import Diagnosis, State, environment, examine
from store.config.settings import Settings, SettingsError

Say = Callable[[str], object]

WIDEST_STATE = max(len(state) for state in State)
WIDEST_NAME = len("redis persistence")


def report(read: Callable[[], Settings], say: Say, *, as_json: bool) -> bool:
    """Diagnose the installation whose settings ``read`` returns; returns whether nothing is wrong."""
    found = []
    for diagnosis in _examined(read):
        found.append(diagnosis)
        if not as_json:
            _say(diagnosis, say)
    healthy = not any(each.state is State.WRONG for each in found)
    if as_json:
        document = {"healthy": healthy, "checks": [asdict(each) for each in found]}
        say(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    return healthy


def _examined(read: Callable[[], Settings]) -> Iterator[Diagnosis]:
    try:
        settings = read()
    except SettingsError as error:
        advice = "docs/reference/settings.md has every setting; almanac keys secrets prints fresh secrets"
        yield Diagnosis("settings", State.WRONG, str(error), advice)
        return
    yield Diagnosis("settings", *environment.settings(os.environ))
    yield from examine(settings)


def _say(diagnosis: Diagnosis, say: Say) -> None:
    say(f"{diagnosis.state:<{WIDEST_STATE}}  {diagnosis.name:<{WIDEST_NAME}}  {diagnosis.sentence}")
    if diagnosis.advice:
        say(f"{'':<{WIDEST_STATE}}  {'':<{WIDEST_NAME}}  -> {diagnosis.advice}")
