"""Reads of several members of an organization grant in one request."""

from __future__ import annotations

import pytest

from providers.errors import Unavailable
from workers.execution.member_reads import MembersCallReporter


class Mailbox:
    """The reporter of one member, with a given pause; it records the reports."""

    def __init__(self, pause: float | None) -> None:
        self.pause = pause
        self.told: list[object] = []

    def answered(self) -> None:
        self.told.append("answered")

    def failed(self, error: Exception, pause: float, *, given_up: bool) -> float | None:
        self.told.append((error, pause, given_up))
        return self.pause


@pytest.mark.parametrize(
    ("pauses", "expected"),
    [([1.0, 3.0, 2.0], 3.0), ([1.0, None], None), ([None, 1.0], None), ([None], None)],
    ids=["the longest", "the last is not called", "the first is not called", "none is called"],
)
def test_a_request_for_several_mailboxes_waits_for_all_of_them(pauses, expected):
    """A mailbox whose circuit breaker is open must not be called for the sake of the others."""
    mailboxes = [Mailbox(each) for each in pauses]
    error = Unavailable("down")

    assert MembersCallReporter(mailboxes).failed(error, 0.5, given_up=False) == expected

    assert [each.told for each in mailboxes] == [[(error, 0.5, False)]] * len(pauses)


def test_an_answer_counts_for_every_mailbox():
    mailboxes = [Mailbox(None), Mailbox(1.0)]
    MembersCallReporter(mailboxes).answered()
    assert [each.told for each in mailboxes] == [["answered"]] * 2
