"""Busy time, minute by minute, beside an oracle that looks at each event and each minute by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from providers.base import Read
from providers.ical.busy import busy_periods
from tests.providers.ical.texts import calendar, event, parsed, soon

MINUTE = 60_000
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata")


class Stated:
    """An event as text, and as the oracle understands it."""

    def __init__(self, random: Random, number: int, first: datetime) -> None:
        self.all_day = random.random() < 0.15
        self.zone = random.choice((*ZONES, None))
        self.wall = first + timedelta(minutes=0 if self.all_day else 15 * random.randrange(96))
        self.length = timedelta(days=1) if self.all_day else timedelta(minutes=random.choice((0, 1, 30, 90)))
        self.free = random.choice(("", "", "", "TRANSP:TRANSPARENT", "STATUS:CANCELLED"))
        self.declined = random.random() < 0.1
        self.every = random.choice((0, 0, 1, 7))
        self.removed = {random.randrange(6)} if self.every else set()
        form = "%Y%m%d" if self.all_day else "%Y%m%dT%H%M%S"
        parameter = ";VALUE=DATE" if self.all_day else f";TZID={self.zone}" if self.zone else ""
        lines = [f"DTSTART{parameter}:{self.wall:{form}}", self.free]
        days, rest = divmod(round(self.length.total_seconds()), 86_400)
        lines.append(f"DURATION:P{days}D" if days else f"DURATION:PT{rest}S")
        if self.every:
            lines.append(f"RRULE:FREQ={'DAILY' if self.every == 1 else 'WEEKLY'}")
        lines += [
            f"EXDATE{parameter}:{self.wall + timedelta(self.every * each):{form}}" for each in self.removed
        ]
        if self.declined:
            lines.append("ATTENDEE;PARTSTAT=DECLINED:mailto:ada@example.com")
        self.text = event("\n".join(filter(None, lines)), str(number))

    def blocks(self, minute: int, calendar_zone: ZoneInfo) -> bool:
        """Whether it blocks a minute, given by its number since 1970: each possible day is tried."""
        if self.free or self.declined:
            return False
        zone = calendar_zone if self.all_day or self.zone is None else ZoneInfo(self.zone)
        moment = datetime.fromtimestamp(minute * 60, UTC)
        today = moment.astimezone(zone).replace(tzinfo=None)
        for back in range(3):
            start = datetime.combine(today.date(), self.wall.time()) - timedelta(days=back)
            number, rest = divmod((start - self.wall).days, self.every or 1)
            if start < self.wall or rest or (not self.every and number) or number in self.removed:
                continue
            begin = start.replace(tzinfo=zone).astimezone(UTC)
            end = (start + self.length).replace(tzinfo=zone) if self.all_day else begin + self.length
            if begin <= moment < end.astimezone(UTC):
                return True
        return False


@pytest.mark.parametrize("seed", range(24))
def test_busy_minutes_are_those_of_the_oracle(seed):
    random = Random(seed)
    # Around the changes of the clock in Europe and America, and elsewhere.
    first = datetime(2026, *random.choice(((3, 5), (3, 26), (10, 22), (10, 29), (7, 1))))  # noqa: DTZ001
    stated = [Stated(random, number, first + timedelta(random.randrange(5))) for number in range(8)]
    zone = ZoneInfo(random.choice(ZONES))
    start = round(first.replace(tzinfo=UTC).timestamp()) // 60 + random.randrange(1440)
    minutes = range(start, start + 5 * 1440)

    text = parsed(calendar(*(each.text for each in stated)))
    periods = busy_periods(
        text,
        start * MINUTE,
        minutes.stop * MINUTE,
        zone=zone,
        own_addresses={"ada@example.com"},
        deadline=soon(),
    )
    busy = Read.of_each({"feed": periods}, start * MINUTE, minutes.stop * MINUTE)["feed"].busy
    found = {minute for first, last in busy.pairs() for minute in range(first // MINUTE, last // MINUTE)}

    assert found == {minute for minute in minutes if any(each.blocks(minute, zone) for each in stated)}
