"""A user with two accounts, and explanations of moments on Thursday."""

from __future__ import annotations

FACTS = ("slot", "free", "window", "nextSlot", "previousSlot")

# The busy period of each account; the two overlap.
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
    """Nothing is free, and the entry has no facts about slots."""
    assert (entry["offered"], entry["reason"], entry["startsSlot"]) == (False, "calendarUnread", False)
    assert facts_of(entry) == dict.fromkeys(FACTS)
