"""The live tests of one account: each step is one use of an adapter, and everything made is deleted again."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from providers.base import (
    PRIMARY,
    CalendarProvider,
    ChannelRequest,
    Channels,
    Failed,
    Member,
    Read,
    Token,
)
from providers.errors import EventNotFound, ProviderError
from providers.events import Changes, Draft, Event, Moment
from providers.google.channels import GoogleChannels
from providers.google.client import Google
from providers.google.oauth import GoogleEndpoints
from providers.microsoft.client import Microsoft
from providers.microsoft.subscriptions import MicrosoftSubscriptions
from tests.live.credentials import SECONDS, LiveAccount
from tests.live.recording import Recorder
from tests.receiver import Receiver

# Every event of the suite has it in its subject, so that later runs find what an earlier one has left.
MARKER = "[almanac live test]"

HOUR = 3_600_000
DAY = 24 * HOUR
# Events are made this far ahead, and searched this far back: 366 days are read at once.
AHEAD, BACK = 30 * DAY, 330 * DAY

# Seconds for a notification to arrive.
NOTIFIED = 60.0


@dataclass(frozen=True)
class Outcome:
    """``fault`` is None when the step has passed."""

    step: str
    fault: str | None


class Suite:
    """``outcomes`` has the steps in order. ``patience`` is the seconds of one call."""

    def __init__(self, live: LiveAccount, recorder: Recorder, *, patience: float = SECONDS) -> None:
        self.live = live
        self.outcomes: list[Outcome] = []
        self._recorder = recorder
        self._patience = patience
        self._calendars: CalendarProvider
        self._channels: Channels
        if isinstance(live.endpoints, GoogleEndpoints):
            self._calendars, self._channels = Google(live.endpoints), GoogleChannels(live.endpoints)
        else:
            self._calendars = Microsoft(live.endpoints)
            self._channels = MicrosoftSubscriptions(live.endpoints)
        self._start = int(time.time() * 1000) // HOUR * HOUR + AHEAD
        self._run = secrets.token_hex(8)

    def run(self) -> list[Outcome]:
        """Run all steps. A failed step ends its part; the other parts and the cleaning follow."""
        with self._recorder.recording():
            # An event of an earlier run would count as busy time, and must not stay.
            if not self._part(self._remove_leftovers):
                return self.outcomes
            try:
                for part in (self._read, self._write, self._push, self._grant):
                    self._part(part)
            finally:
                self._part(self._clean_up)
        return self.outcomes

    def marked(self) -> list[Event]:
        """The events of this suite in the calendar, of earlier runs too."""
        found = self._calendars.events(
            self.live.account,
            [self.live.calendar],
            self._start - AHEAD - BACK,
            self._start + DAY,
            deadline=self._deadline(),
        )[self.live.calendar]
        assert not isinstance(found, Failed), found.message
        return [event for event in found if event.subject.startswith(MARKER)]

    def _remove_leftovers(self) -> None:
        with self._step("leftovers of earlier runs"):
            self._remove_marked()

    def _clean_up(self) -> None:
        with self._step("cleaning"):
            self._remove_marked()
            assert self.marked() == []

    def _read(self) -> None:
        with self._step("main calendar"):
            main = self._calendars.main_calendar(self.live.account, deadline=self._deadline())
            assert main.id
        with self._step("calendars"):
            calendars = self._calendars.calendars(self.live.account, deadline=self._deadline())
            assert [each for each in calendars if each.primary]
        with self._step("busy periods"):
            self._busy()
        with self._step("events"):
            self.marked()

    def _write(self) -> None:
        account, calendar = self.live.account, self.live.calendar
        content = Changes(
            subject=f"{MARKER} {self._run}",
            description="Made by `make test-live`, which deletes it",
            location="Nowhere",
            start=Moment(self._start),
            end=Moment(self._start + HOUR),
            meta_id=f"almanac-live-{self._run}",
            notify=False,
        )
        draft = Draft(content, _digest(f"key {self._run}"), _digest(f"content {self._run}"))
        with self._step("create an event"):
            made = self._calendars.create_event(account, calendar, draft, deadline=self._deadline())
            assert (made.made, made.event.subject) == (True, content.subject)
            assert (made.event.start, made.event.end) == (self._start, self._start + HOUR)
        with self._step("create it again"):
            again = self._calendars.create_event(account, calendar, draft, deadline=self._deadline())
            assert again.event.id == made.event.id
        with self._step("get the event"):
            got = self._calendars.event(account, calendar, made.event.id, deadline=self._deadline())
            assert got.meta_id == content.meta_id
        with self._step("find the event"):
            found = self._calendars.find_event(
                account, calendar, content.meta_id or "", deadline=self._deadline()
            )
            assert found.id == made.event.id
        with self._step("busy during the event"):
            self._eventually(lambda: self._is_busy(self._start, self._start + HOUR))
        with self._step("change the event"):
            changes = Changes(start=Moment(self._start + HOUR), end=Moment(self._start + 2 * HOUR))
            changed = self._calendars.update_event(
                account, calendar, made.event.id, changes, deadline=self._deadline()
            )
            assert changed.start == self._start + HOUR
        with self._step("delete the event"):
            self._delete(made.event.id)
        with self._step("get the deleted event"):
            try:
                self._calendars.event(account, calendar, made.event.id, deadline=self._deadline())
            except EventNotFound:
                pass
            else:
                raise AssertionError("it is still there")

    def _push(self) -> None:
        push = self.live.push
        if push is None:
            return
        receiver = Receiver()
        receiver.port = push.port
        receiver.up()
        try:
            self._notified(receiver, ChannelRequest(secrets.token_hex(16), Token(self._run), push.url))
        finally:
            receiver.down()

    def _notified(self, receiver: Receiver, wanted: ChannelRequest) -> None:
        account, calendar = self.live.account, self.live.calendar
        with self._step("open a channel"):
            opened = self._channels.open(account, calendar, wanted, deadline=self._deadline())
        try:
            with self._step("a change is notified"):
                before = len(receiver.received)
                content = Changes(
                    subject=f"{MARKER} {self._run} push",
                    start=Moment(self._start + 3 * HOUR),
                    end=Moment(self._start + 4 * HOUR),
                    notify=False,
                )
                draft = Draft(content, _digest(f"push {self._run}"), _digest(f"pushed {self._run}"))
                made = self._calendars.create_event(account, calendar, draft, deadline=self._deadline())
                self._eventually(lambda: len(receiver.received) > before, NOTIFIED)
                self._delete(made.event.id)
        finally:
            with self._step("close the channel"):
                self._channels.close(account, opened.id, opened.resource, deadline=self._deadline())

    def _grant(self) -> None:
        with self._step("refresh the tokens"):
            token = self.live.account.tokens.access_token(deadline=self._deadline())
            assert self.live.account.tokens.renewed(token, deadline=self._deadline()).reveal
        if self.live.grant is not None:
            with self._step("busy periods by an organization grant"):
                outcomes = self._calendars.busy_of_members(
                    self.live.grant,
                    [Member(self.live.member)],
                    self._start,
                    self._start + DAY,
                    deadline=self._deadline(),
                )
                assert [isinstance(each[PRIMARY], Read) for each in outcomes] == [True], outcomes

    def _is_busy(self, start: int, end: int) -> bool:
        return any(a <= start and end <= b for a, b in self._busy())

    def _busy(self) -> list[tuple[int, int]]:
        outcome = self._calendars.busy(
            self.live.account,
            [self.live.calendar],
            self._start,
            self._start + DAY,
            deadline=self._deadline(),
        )[self.live.calendar]
        assert isinstance(outcome, Read), outcome
        return list(zip(outcome.busy.starts.tolist(), outcome.busy.ends.tolist(), strict=True))

    def _remove_marked(self) -> None:
        for event in self.marked():
            # Another run may be cleaning too.
            with suppress(EventNotFound):
                self._delete(event.id)

    def _delete(self, event: str) -> None:
        self._calendars.delete_event(
            self.live.account, self.live.calendar, event, notify=False, deadline=self._deadline()
        )

    def _deadline(self) -> float:
        return time.monotonic() + self._patience

    def _eventually(self, holds: Callable[[], bool], seconds: float = SECONDS) -> None:
        """Providers show a change a moment later in other answers."""
        give_up = time.monotonic() + min(seconds, self._patience)
        while not holds():
            assert time.monotonic() < give_up, f"not within {min(seconds, self._patience):.0f} s"
            time.sleep(0.5)

    def _part(self, part: Callable[[], None]) -> bool:
        """Whether all steps of a part have passed."""
        try:
            part()
        except _StepFailed:
            return False
        return True

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        self._recorder.step = name
        try:
            yield
        except (ProviderError, AssertionError) as error:
            fault = f"{type(error).__name__}: {error}"
            self.outcomes.append(Outcome(name, fault))
            raise _StepFailed from error
        self.outcomes.append(Outcome(name, None))


class _StepFailed(Exception):
    """The step is in the outcomes."""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
