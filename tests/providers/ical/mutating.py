"""Damage to the bytes of a calendar."""

from __future__ import annotations

from random import Random

_BYTES = (b"", b"\x00", b"\r\n", b"\n ", b":", b";", b",", b'"', b"\\", b"=", b"\xff\xfe", b"9" * 40, b"-")
_LINES = (
    b"BEGIN:VEVENT",
    b"END:VEVENT",
    b"BEGIN:VCALENDAR",
    b"END:VCALENDAR",
    b"RRULE:FREQ=SECONDLY",
    b"RRULE:FREQ=DAILY;BYSETPOS=-1;BYHOUR=1,2,3;COUNT=999999999",
    b"RRULE:FREQ=YEARLY;BYDAY=53MO;BYWEEKNO=53;UNTIL=99991231",
    b"DTSTART:99991231T235959Z",
    b"DTEND:00010101T000000",
    b"DURATION:P999999W",
    b"RECURRENCE-ID;RANGE=THISANDFUTURE:20260309T090000Z",
    b"RDATE;VALUE=PERIOD:20260401T090000Z/PT2H,/",
    b"EXDATE:20260302T090000Z",
    b"TZOFFSETTO:+2359",
    b"X-WR-TIMEZONE:../../etc/passwd",
    b"TRANSP:OPAQUE",
)


def mutated(content: bytes, random: Random) -> bytes:
    """The content with one to four places damaged."""
    for _ in range(random.choice((1, 1, 2, 4))):
        content = _CHANGES[random.randrange(len(_CHANGES))](content, random)
    return content


def _cut(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content) + 1)]


def _lost(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + content[at + random.randrange(1, 200) :]


def _changed(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + random.choice(_BYTES) + content[at + random.randrange(3) :]


def _random_byte(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + random.randbytes(random.randrange(1, 4)) + content[at + 1 :]


def _line(content: bytes, random: Random) -> bytes:
    lines = content.split(b"\r\n")
    lines.insert(random.randrange(len(lines) + 1), random.choice(_LINES))
    return b"\r\n".join(lines)


def _line_lost(content: bytes, random: Random) -> bytes:
    lines = content.split(b"\r\n")
    del lines[random.randrange(len(lines))]
    return b"\r\n".join(lines)


def _lines_swapped(content: bytes, random: Random) -> bytes:
    lines = content.split(b"\r\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\r\n".join(lines)


def _repeated(content: bytes, random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + content[at : at + random.randrange(1, 300)] * random.randrange(2, 5) + content[at:]


_CHANGES = (
    _cut,
    _lost,
    _changed,
    _random_byte,
    _line,
    _line_lost,
    _lines_swapped,
    _repeated,
)
