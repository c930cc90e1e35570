"""Damaged calendars either fail, or every event that is not damaged still blocks its time."""

from __future__ import annotations

import re
import resource
from random import Random

import pytest

from providers.errors import ProviderError
from providers.ical.busy import busy_periods
from providers.ical.calendar import read
from providers.ical.events import Reader, events
from tests.providers.ical.mutating import mutated
from tests.providers.ical.random_series import series, with_exceptions
from tests.providers.ical.test_busy import CUSTOM, TIME, YEAR
from tests.providers.ical.texts import at, calendar, event, soon

SOME, MANY = 600, 20_000
READER = Reader("ics", "feed")
DAY = re.compile(rb"DTSTART:202604(\d\d)")


def witnesses() -> list[str]:
    """Events that have a day of their own, so that each is found by what it blocks."""
    return [
        event(f"DTSTART:202604{day:02}T090000Z\nDTEND:202604{day:02}T100000Z\nSUMMARY:{day}", f"w{day}")
        for day in range(1, 29)
    ]


def sample(random: Random) -> bytes:
    """A calendar with zones, series, exceptions, busy times and simple events."""
    made = series(random)
    first = with_exceptions(random, made, [made.first]).decode()
    inner = first[first.index("BEGIN:VEVENT") : first.rindex("END:VCALENDAR")]
    custom = event("DTSTART;TZID=Customized Time Zone:20260302T100000\nDURATION:PT1H", "custom")
    free_busy = "BEGIN:VFREEBUSY\nFREEBUSY:20260502T090000Z/PT1H\nEND:VFREEBUSY"
    alarm = event(f"{TIME}\nBEGIN:VALARM\nTRIGGER:-PT1M\nEND:VALARM", "alarm")
    parts = [CUSTOM, inner, custom, free_busy, alarm, *witnesses()]
    return calendar(*parts, head="X-WR-TIMEZONE:Europe/Berlin")


def undamaged(content: bytes) -> set[bytes]:
    """The days of those witnesses whose component is in the content as it was, outside of any other."""
    return {
        DAY.search(each.encode())[1]  # type: ignore[index]
        for each in witnesses()
        if b"\n" + each.replace("\n", "\r\n").encode() + b"\r\n" in content
    }


def check(seed: int) -> bool:
    """Whether a mutated calendar was read; nothing but the errors of a provider is raised."""
    random = Random(seed)
    content = mutated(sample(random), random)
    try:
        parsed = read(content, deadline=soon())
        periods = busy_periods(parsed, *YEAR, deadline=soon())
        shown = events(parsed, READER, at("2026-04-01"), at("2026-04-29"), deadline=soon())
    except ProviderError:
        return False
    for day in undamaged(content):
        start = at(f"2026-04-{day.decode()} 09:00")
        assert any(first <= start and last >= start + 3_600_000 for first, last in periods), (seed, day)
        assert any(each.start == start for each in shown), (seed, day)
    return True


def test_damaged_calendars_fail_or_block_what_is_not_damaged():
    read_at_all = sum(check(seed) for seed in range(SOME))

    # Of either kind there are many, so that both were tried.
    assert SOME // 10 < read_at_all < SOME * 9 // 10


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_twenty_thousand_damaged_calendars():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert 0 < sum(check(seed) for seed in range(SOME, SOME + MANY)) < MANY
    # Kibibytes.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


@pytest.mark.parametrize("seed", range(200))
def test_bytes_at_random_are_no_calendar(seed):
    random = Random(seed)
    with pytest.raises(ProviderError):
        read(random.randbytes(random.randrange(2000)), deadline=soon())


@pytest.mark.parametrize(
    "line",
    [
        "DTSTART;" + "A=1;" * 200_000 + ":20260302T090000Z",
        "DTSTART;" + 'A="' * 200_000,
        "EXDATE;" + 'A="' + ":" * 900_000,
        "EXDATE;" + 'A="' + ":" * 900_000 + '":20260302T090000Z',
        "EXDATE;" + 'A=":";' * 200_000 + ":20260302T090000Z",
        "ATTENDEE;" + 'DECLINED="' * 100_000,
        "RRULE:FREQ=DAILY;BYMONTH=" + ",".join(["1"] * 200_000),
        "RRULE:" + ";" * 500_000,
        "RDATE:" + ",".join(["20260401T090000Z"] * 60_000),
        "EXDATE:" + "," * 900_000,
        "DESCRIPTION:" + "\\" * 900_000,
        "\n".join(["RDATE:x"] * 100_000),
        "\n".join(["ATTENDEE;PARTSTAT=DECLINED:mailto:a@example.com"] * 20_000),
    ],
)
def test_long_lines_cost_no_more_than_their_length(line):
    try:
        parsed = read(calendar(event(f"{TIME}\n{line}")), deadline=soon())
        busy_periods(parsed, *YEAR, deadline=soon())
        events(parsed, READER, *YEAR, deadline=soon())
    except ProviderError:
        return
