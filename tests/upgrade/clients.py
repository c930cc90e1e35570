"""The clients of an installation that is upgraded: availability, groups, events, users, holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import requests

from tests.faults import truth
from tests.faults.questions import Question, Verdict, WrongAnswer, about
from tests.faults.truth import Period
from tests.faults.witness import Witness, Write

# Seconds that a hold is kept: longer than an upgrade takes.
KEPT = 3600


class Clients(Witness):
    """A witness that also holds time of the user ``holder``, and uses every second hold for an event."""

    def __init__(self, *arguments: Any, holder: str, provider: str) -> None:
        super().__init__(*arguments)
        self.holder = holder
        self.calendar = f"/users/{holder}/calendar/events/{provider}/primary"

    def clients(self) -> list[Callable[[requests.Session, int], None]]:
        return [*super().clients(), self._hold]

    def holds(self) -> list[Write]:
        """The holds that were made."""
        return [write for write in self.writes if write.path == "/holds" and write.done]

    def events(self) -> list[str]:
        """The subjects of all events that were written."""
        return sorted(write.body["subject"] for write in self.writes if "subject" in write.body)

    def _hold(self, session: requests.Session, number: int) -> None:
        when = truth.body(truth.written(number))
        body = {"users": [self.holder], "expiresIn": KEPT, **when}
        hold = Write("/holds", body, f"{self.name}-hold-{number}")
        self.writes.append(hold)
        if self.send(hold, session) == "201" and number % 2:
            path = f"{self.calendar}?hold={hold.made['id']}"
            event = Write(path, {"subject": f"{self.name} held {number}", **when}, f"{hold.key}-event")
            self.writes.append(event)
            self.send(event, session)


def questions(
    people: Mapping[str, Collection[Period]], slug: str, keeper: str, held: Collection[Period]
) -> list[Question]:
    """Those of the tests of faults, about a group, and about a user without events whose time is held."""
    first, second, *_ = people
    body = {"participants": [{"users": [first, second]}]}
    both = [*people[first], *people[second]]
    return [
        *about(people, slug),
        Question("slots of a group", "/scheduling", _group(both), method="POST", body=body),
        Question("slots beside holds", f"/users/{keeper}/scheduling", _beside(held)),
    ]


def _group(busy: Collection[Period]) -> Callable[[Any], Verdict]:
    def judge(answer: Any) -> Verdict:
        if answer["failedUsers"]:
            return Verdict.PARTIAL
        _same(truth.periods(answer["data"]["availableSlots"]), busy)
        return Verdict.RIGHT

    return judge


def _beside(busy: Collection[Period]) -> Callable[[Any], Verdict]:
    def judge(answer: Any) -> Verdict:
        _same(truth.periods(answer["data"]["availableSlots"]), busy)
        return Verdict.RIGHT

    return judge


def _same(slots: list[Period], busy: Collection[Period]) -> None:
    if slots != truth.free(busy):
        raise WrongAnswer(f"{slots} are not the free time beside {busy}")
