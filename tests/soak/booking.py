"""A client that also books only free time: holds, creates and moves, each answer compared with the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

import requests

from tests.soak.client import Client
from tests.soak.faults import READS_FAULT, WRITES_FAULT
from tests.soak.installation import DEADLINE, meeting
from tests.soak.model import EXACT, MINUTE, Calendar, Held, Person, Question, text

# Seconds until the time of a create with an unclear answer is free again: it counts as held until then.
LEASE = 2 * DEADLINE + 6.0
# Seconds: some holds expire during the run.
LIVES = (30, 3600)
HOLDS = 4


class BookingClient(Client):
    """Holds are of the people of its circle, as all it writes."""

    def create_if_free(self) -> None:
        calendar, person = self._own()
        wanted = self._wanted()
        path = self._events(person, calendar)
        answer = self._if_free("POST event ifFree", path, "POST", wanted)
        if self._agrees([person], wanted, answer, 201, [calendar]):
            calendar.events[answer.json()["data"]["id"]] = (wanted.start, wanted.end)
            self._done(calendar)

    def move_if_free(self) -> None:
        calendar, person = self._own()
        event = self._one_of(calendar)
        if event is None:
            return self.create_if_free()
        wanted = self._wanted()
        path = f"{self._events(person, calendar)}/{quote(event, safe='')}"
        answer = self._if_free("PUT event ifFree", path, "PUT", wanted)
        if self._agrees([person], wanted, answer, 200, [calendar], but=event):
            calendar.events[event] = (wanted.start, wanted.end)
            self._done(calendar)
        return None

    def hold(self) -> None:
        """Taken for one or two people; half of the time another one is released."""
        people = [self._sure()]
        other = self._sure()
        people += [other] if other is not people[0] and self._random.random() < 0.3 else []
        wanted, life = self._wanted(), self._random.choice(LIVES)
        body = {
            **self._margin(wanted),
            "start": text(wanted.start),
            "end": text(wanted.end),
            "users": [each.user for each in people],
            "expiresIn": life,
        }
        asked, answer = self._ask("POST hold", "/holds", method="POST", json=body)
        if self._agrees(people, wanted, answer, 201):
            self._records.count(answered=1)
            calendars = [each for person in people for each in person.calendars]
            self._circle.held[answer.json()["data"]["id"]] = Held(
                (wanted.start, wanted.end), calendars, asked + life
            )
        if len(self._circle.held) > HOLDS or (self._circle.held and self._random.random() < 0.5):
            self._release(self._random.choice(list(self._circle.held)))

    def _release(self, hold: str) -> None:
        _, answer = self._ask("DELETE hold", f"/holds/{hold}", method="DELETE")
        expired = self._circle.held.pop(hold).expires_at < time.monotonic() + EXACT
        if answer.status_code != 200 and not (expired and answer.status_code == 404):
            self._records.is_wrong(f"DELETE hold: {answer.status_code} {answer.text}")

    def _if_free(self, route: str, path: str, method: str, wanted: Question) -> requests.Response:
        query = {"ifFree": "true", **self._margin(wanted)}
        body = {"start": text(wanted.start), "end": text(wanted.end), "subject": "Ours"}
        return self._ask(route, path, query, method=method, json=body)[1]

    def _margin(self, wanted: Question) -> dict[str, Any]:
        return {"padding": wanted.padding // MINUTE, "maxOverlaps": wanted.overlaps}

    def _agrees(
        self,
        people: Sequence[Person],
        wanted: Question,
        answer: requests.Response,
        status: int,
        written: Sequence[Calendar] = (),
        but: str | None = None,
    ) -> bool:
        """Whether the time was taken; the answer is compared. ``written`` are the calendars of the event."""
        if answer.status_code not in (status, 409):
            for calendar in written:
                calendar.in_doubt = time.monotonic() + LEASE
            self._records.count(unclear=len(written))
            self._failed(answer, *(p.user for p in people), fair=WRITES_FAULT if written else READS_FAULT)
            return False
        taken = answer.status_code == status
        free = all(self._circle.is_free(each, wanted, but) for each in people)
        self._records.count(checked=1)
        if taken != free:
            sent = f"{answer.request.method} {answer.request.url} {answer.request.body!r}"
            self._records.is_wrong(
                f"{sent}: {answer.status_code}, and the time is {'free' if free else 'taken'}"
            )
        return taken

    def _wanted(self) -> Question:
        """A meeting that must be free."""
        start, end = meeting(self._random)
        padding = self._random.choice((0, 0, 5, 10)) * MINUTE
        return Question(start, end, end - start, padding, self._random.choice((0, 0, 0, 1)), None)

    shares: ClassVar[dict[Callable[[Any], None], int]] = {
        **Client.shares,
        create_if_free: 1,
        move_if_free: 1,
        hold: 2,
    }
