"""A user of two accounts, and what is said of moments of the Thursday."""

from __future__ import annotations

FACTS = ("slot", "free", "window", "nextSlot", "previousSlot")

# Ten to half past ten is busy in one account, and a quarter past to a quarter to eleven in the other.
BUSY = (("10:00", "10:30"), ("10:15", "10:45"))


def thursday(time):
    return f"2026-12-03T{time}:00Z"


def span(stretch):
    """``("09:00", "10:00")``."""
    return stretch and (stretch["start"][11:16], stretch["end"][11:16])


def explained(answer):
    assert answer.status_code == 200, answer.text
    return answer.json["data"]


def facts_of(entry):
    return {name: span(entry[name]) for name in FACTS}


def closed(entry):
    """Nothing is free, and nothing is said of slots."""
    assert (entry["offered"], entry["reason"], entry["startsSlot"]) == (False, "calendarUnread", False)
    assert facts_of(entry) == dict.fromkeys(FACTS)
