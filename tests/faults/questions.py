"""The clients' requests during a fault: each answer is right, names what is missing, or is an error."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import requests

from tests.faults import truth
from tests.faults.truth import Period

FRESH = {"Cache-Control": "no-cache"}


class Verdict(StrEnum):
    """The outcome of an answer with status 200."""

    RIGHT = "right"
    PARTIAL = "names what it could not read"


class WrongAnswer(AssertionError):
    """Busy time is offered as free."""


@dataclass(frozen=True)
class Question:
    """A request below ``/v1``; ``judge`` takes the body of its 200.

    :raise WrongAnswer: by ``judge``
    """

    name: str
    path: str
    judge: Callable[[Any], Verdict]
    method: str = "GET"
    query: Mapping[str, str] = field(default_factory=lambda: truth.DURING)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    def ask(self, session: requests.Session, url: str, key: str) -> requests.Response:
        return session.request(
            self.method,
            f"{url}/v1{self.path}",
            params=self.query,
            json=self.body,
            headers={"Authorization": f"Bearer {key}", **self.headers},
            timeout=60,
        )


def about(people: Mapping[str, Collection[Period]], slug: str) -> list[Question]:
    """The requests about these people, all of them in one organization."""
    user, busy = next(iter(people.items()))
    one, team = f"/users/{user}", f"/organizations/{slug}"
    return [
        Question("slots of one", f"{one}/scheduling", slots_of_one(busy)),
        Question("slots of one, anew", f"{one}/scheduling", slots_of_one(busy), headers=FRESH),
        Question("busy of one, anew", f"{one}/calendar/busy", busy_of_one(busy), headers=FRESH),
        Question("slots of all", f"{team}/scheduling", slots_of_all(people)),
        Question("slots of all, anew", f"{team}/scheduling", slots_of_all(people), headers=FRESH),
        Question("busy of all, anew", f"{team}/calendar/busy", busy_of_all(people), headers=FRESH),
        Question(
            "slots of several",
            "/users/scheduling",
            slots_of_several(people),
            method="POST",
            headers=FRESH,
            body={"users": [{"id": each} for each in people]},
        ),
    ]


def slots_of_one(busy: Collection[Period]) -> Callable[[Any], Verdict]:
    def judge(body: Any) -> Verdict:
        _nothing(truth.offered(body["data"]["availableSlots"], busy))
        assert truth.periods(body["data"]["availableSlots"]) == truth.free(busy)
        return Verdict.RIGHT

    return judge


def busy_of_one(busy: Collection[Period]) -> Callable[[Any], Verdict]:
    def judge(body: Any) -> Verdict:
        if body["failedCalendars"]:
            return Verdict.PARTIAL
        _nothing(truth.left_out(body["data"], busy))
        return Verdict.RIGHT

    return judge


def slots_of_all(people: Mapping[str, Collection[Period]]) -> Callable[[Any], Verdict]:
    def judge(body: Any) -> Verdict:
        failed = truth.failed(body)
        for user, busy in people.items():
            mine = [slot for slot in body["data"]["availableSlots"] if slot["userId"] == user]
            _nothing(truth.offered(mine, busy))
            # A user who could not be read has no slots, and no other user is left out.
            assert truth.periods(mine) == ([] if user in failed else truth.free(busy)), user
        return Verdict.PARTIAL if failed else Verdict.RIGHT

    return judge


def busy_of_all(people: Mapping[str, Collection[Period]]) -> Callable[[Any], Verdict]:
    def judge(body: Any) -> Verdict:
        failed = truth.failed(body)
        for user, busy in people.items():
            if user not in failed:
                _nothing(truth.left_out(body["data"], busy))
        return Verdict.PARTIAL if failed else Verdict.RIGHT

    return judge


def slots_of_several(people: Mapping[str, Collection[Period]]) -> Callable[[Any], Verdict]:
    def judge(body: Any) -> Verdict:
        assert [entry["userId"] for entry in body["data"]] == list(people)
        for entry in body["data"]:
            busy = people[entry["userId"]]
            if entry["status"] == "ok":
                _nothing(truth.offered(entry["availableSlots"], busy))
                assert truth.periods(entry["availableSlots"]) == truth.free(busy)
            else:
                assert "availableSlots" not in entry
        wrong = any(entry["status"] != "ok" for entry in body["data"])
        return Verdict.PARTIAL if wrong else Verdict.RIGHT

    return judge


def _nothing(lies: list[Period]) -> None:
    if lies:
        raise WrongAnswer(f"busy, and said to be free: {[f'{start:%d %H:%M}' for start, _ in lies]}")
