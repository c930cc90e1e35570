"""Series in an unknown zone: a time that is busy in one of the possible zones is busy."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from providers.ical.bounds import InvalidCalendar
from providers.ical.busy import busy_periods
from tests.providers.ical.test_busy import busy
from tests.providers.ical.texts import at, calendar, event, parsed, soon

HALF_HOUR = 1_800_000
RANGE = (at("2026-02-20"), at("2026-04-01"))
SOME, MANY = 150, 5_000
# Mars and Venus are the unknown ones.
PARAMETERS = (";TZID=Mars", ";TZID=Venus", ";TZID=Asia/Kolkata", "")

DAILY = "DTSTART;TZID=Mars:20260302T100000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=3"
FLOATING = DAILY.replace(";TZID=Mars", "")
FIRST_DAYS = ["01", "02", "03"]


def days_of(*parts, head=""):
    """The days on which busy periods begin; a time in an unknown zone begins at 14 hours before UTC."""
    return sorted(each[8:10] for each in busy(calendar(*parts, head=head)))


@pytest.mark.parametrize("lines", ["EXDATE", "RECURRENCE-ID"])
@pytest.mark.parametrize(
    ("named", "left"),
    [
        (";TZID=Mars:20260303T100000", ["01", "03"]),
        (';TZID="Mars":20260303T100000', ["01", "03"]),
        # At UTC+14 this is the second occurrence, at UTC-10 the first one, elsewhere none.
        (":20260302T200000Z", FIRST_DAYS),
        (";TZID=Pacific/Kiritimati:20260303T100000", FIRST_DAYS),
        (";TZID=Venus:20260303T100000", FIRST_DAYS),
        (":20260303T100000", FIRST_DAYS),
        (";VALUE=DATE:20260303", FIRST_DAYS),
        (";TZID=Mars:20260303T110000", FIRST_DAYS),
    ],
)
def test_an_occurrence_in_an_unknown_zone_is_named_by_its_zone_and_local_time_only(lines, named, left):
    if lines == "EXDATE":
        assert days_of(event(f"{DAILY}\nEXDATE{named}")) == left
    else:
        assert days_of(event(DAILY), event(f"RECURRENCE-ID{named}\nSTATUS:CANCELLED")) == left


@pytest.mark.parametrize(
    ("named", "left"),
    [
        (":20260303T100000", ["01", "03"]),
        (";VALUE=DATE:20260303", ["01", "03"]),
        (":20260302T200000Z", FIRST_DAYS),
        (";TZID=Mars:20260303T100000", ["01", "03"]),
        (";TZID=Venus:20260303T100000", FIRST_DAYS),
    ],
)
def test_a_floating_occurrence_in_a_stated_unknown_zone(named, left):
    head = "X-WR-TIMEZONE:Mars"

    assert days_of(event(f"{FLOATING}\nEXDATE{named}"), head=head) == left
    assert days_of(event(FLOATING), event(f"RECURRENCE-ID{named}\nSTATUS:CANCELLED"), head=head) == left


def test_a_time_in_an_unknown_zone_names_no_occurrence_elsewhere():
    series = "DTSTART:20260302T090000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=2"
    # The second occurrence at UTC+14.
    named = ";TZID=Mars:20260303T230000"

    assert days_of(event(f"{series}\nEXDATE{named}")) == ["02", "03"]
    assert days_of(event(series), event(f"RECURRENCE-ID{named}\nSTATUS:CANCELLED")) == ["02", "03"]


@pytest.mark.parametrize(
    ("named", "left"),
    [
        ("20261120", ["19", "21"]),
        # Where a day begins first it is the midnight of the 20th.
        ("20261119T100000Z", ["19", "20", "21"]),
        ("20261120T000000Z", ["19", "21"]),
        ("20261120T090000", ["19", "21"]),
    ],
)
def test_a_day_in_an_unknown_zone(named, left):
    lines = f"DTSTART;VALUE=DATE:20261119\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE:{named}"
    found = busy(calendar(event(lines), head="X-WR-TIMEZONE:Mars"))

    assert [f"{int(each[8:10]) + 1}" for each in found] == left


def test_a_date_names_an_occurrence_if_it_is_its_day_in_both_zones():
    late = "DTSTART:2026030{}T233000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE;VALUE=DATE:20260303"
    head = "X-WR-TIMEZONE:Europe/Berlin"
    early = late.replace("T2330", "T0930")

    # In UTC it is the second one, in Berlin the first.
    assert days_of(event(late.format(2)), head=head) == ["02", "03", "04"]
    assert days_of(event(early.format(2)), head=head) == ["02", "04"]
    assert days_of(event(late.format(2))) == ["02", "04"]


LATER = "RECURRENCE-ID;RANGE=THISANDFUTURE{}\nDTSTART;TZID=Mars:20260303T120000\nDURATION:PT1H"


def test_a_change_of_all_later_occurrences_at_a_time_that_cannot_be_compared():
    changed = LATER.format(":20260303T100000Z")

    with pytest.raises(InvalidCalendar):
        days_of(event(DAILY), event(changed))
    assert days_of(event(DAILY), event(f"{changed}\nSTATUS:CANCELLED")) == FIRST_DAYS
    # Two hours later, from the second one on.
    found = sorted(busy(calendar(event(DAILY), event(LATER.format(";TZID=Mars:20260303T100000")))))
    assert [each[8:13] for each in found] == ["01 20", "02 22", "03 22"]


def test_an_exception_of_several_masters_of_which_one_has_an_unknown_zone():
    known = "DTSTART:20260303T090000Z\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=1"
    cancelled = "RECURRENCE-ID:20260303T090000Z\nSTATUS:CANCELLED"

    # It may be an occurrence of the other one, too.
    assert days_of(event(known), event(DAILY), event(cancelled)) == ["01", "02", "03", "03"]


class Drawn:
    """Events of one UID whose lines name occurrences in one way or another, of which few fit together."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.head = random.choice(("", "X-WR-TIMEZONE:Mars", "X-WR-TIMEZONE:Europe/Berlin"))
        self.all_day = random.random() < 0.2
        self.starts: list[datetime] = []
        parts = [self._master() for _ in range(random.choice((1, 1, 1, 2)))]
        parts += [self._exception() for _ in range(random.choice((0, 1, 2)))]
        self.text = calendar(*parts, head=self.head)

    def _master(self) -> str:
        random = self.random
        first = datetime(2026, 3, 2, 0 if self.all_day else random.randrange(24))  # noqa: DTZ001
        parameter = random.choice(PARAMETERS)
        start = f";VALUE=DATE:{first:%Y%m%d}" if self.all_day else self._time(first, parameter)
        every = random.choice((timedelta(days=1), timedelta(days=2), timedelta(hours=2)))
        if every < timedelta(days=1) and not self.all_day:
            rule = "FREQ=HOURLY;INTERVAL=2;COUNT=20"
        else:
            every = timedelta(days=every.days or 1)
            rule = f"FREQ=DAILY;INTERVAL={every.days};COUNT=5"
        self.starts = [first + every * each for each in range(5)]
        length = "P1D" if self.all_day else random.choice(("PT30M", "PT5H"))
        lines = [f"DTSTART{start}", f"DURATION:{length}", f"RRULE:{rule}"]
        lines += [f"RDATE{self._named(parameter)}" for _ in range(random.choice((0, 0, 1)))]
        lines += [f"EXDATE{self._named(parameter)}" for _ in range(random.choice((0, 1, 2)))]
        return event("\n".join(lines))

    def _exception(self) -> str:
        random = self.random
        scope = ";RANGE=THISANDFUTURE" if random.random() < 0.2 else ""
        lines = [f"RECURRENCE-ID{scope}{self._named(random.choice(PARAMETERS))}"]
        if random.random() < 0.5:
            lines += ["STATUS:CANCELLED"]
        return event("\n".join([*lines, f"DTSTART{self._named(random.choice(PARAMETERS))}", "DURATION:PT1H"]))

    def _named(self, parameter: str) -> str:
        """An occurrence, or near one: in a zone, in UTC, or as a date."""
        start = self.random.choice(self.starts)
        way = self.random.randrange(4)
        if way == 0:
            return f";VALUE=DATE:{start:%Y%m%d}"
        if way == 1:
            return f":{start - timedelta(hours=self.random.choice((14, 14, 1, 0, -10, -12))):%Y%m%dT%H%M%SZ}"
        return self._time(start, parameter if way == 2 else self.random.choice(PARAMETERS))

    @staticmethod
    def _time(start: datetime, parameter: str) -> str:
        return f"{parameter}:{start:%Y%m%dT%H%M%S}"


def in_world(text: bytes, **hours: int) -> bytes:
    """The text in a world in which these zones are known: each is ahead of UTC by its hours."""
    defined = "".join(
        f"BEGIN:VTIMEZONE\r\nTZID:{name}\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\n"
        f"TZOFFSETFROM:{each:+03}00\r\nTZOFFSETTO:{each:+03}00\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"
        for name, each in hours.items()
    )
    return text.replace(b"BEGIN:VEVENT", f"{defined}BEGIN:VEVENT".encode(), 1)


def half_hours(text: bytes) -> set[int]:
    periods = busy_periods(parsed(text), *RANGE, zone=ZoneInfo("America/New_York"), deadline=soon())
    return {each for first, last in periods for each in range(first // HALF_HOUR, -(-last // HALF_HOUR))}


def check(seed: int) -> bool:
    """Whether a random calendar was read. A time that is busy at one of the offsets must be busy."""
    random = Random(seed)
    drawn = Drawn(random)
    try:
        found = half_hours(drawn.text)
    except InvalidCalendar:
        return False
    for mars in range(-12, 15):
        world = in_world(drawn.text, Mars=mars, Venus=random.randrange(-12, 15))
        assert half_hours(world) <= found, (seed, mars, world.decode())
    return True


def test_what_is_busy_wherever_the_zone_may_be_is_busy():
    assert sum(check(seed) for seed in range(SOME)) > SOME * 3 // 4


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_calendars_with_unknown_zones():
    for seed in range(SOME, SOME + MANY):
        check(seed)
