"""Load on a server: by wrk where it is there, else by our own generator; varied requests from a file."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson

from tests.benchmarks import calendars, people

WRK = shutil.which("wrk")
GENERATOR = "wrk -t1 -c8" if WRK else "our own generator, 8 connections (wrk is not installed)"
CONNECTIONS = 8
SCRIPT = Path(__file__).with_name("wrk.lua")

# More than a run sends: requests hardly repeat.
QUESTIONS = 10_000

# In each of these there are slots between 15:00 and 17:30 UTC, whatever the padding below.
ZONES = ("UTC", "Europe/London", "Europe/Berlin", "America/New_York", "America/Sao_Paulo")
WINDOWS = (("08:00", "18:30"), ("09:00", "19:00"), ("07:30", "18:00"), ("08:30", "20:00"), None)
DURATIONS = (15, 20, 30, 45)
PADDINGS = (0, 5, 10, 15)
FIRST_DAYS = 30
SOME_SLOT = '"availableSlots":[{'


@dataclass(frozen=True, slots=True)
class Requests:
    """A file of requests, and what every answer to them must contain."""

    file: Path
    expected: str


def fixed(folder: Path, path: str, expected: str) -> Requests:
    """The same request over and over."""
    file = folder / f"fixed-{path.strip('/')}"
    file.write_text(f"{path}\tUTC\n")
    return Requests(file, expected)


def varied(folder: Path, users: Sequence[int], days: int) -> Requests:
    """Slots of varied users over ``days``, with every option varied too."""
    dice = random.Random(f"questions {days}")
    file = folder / f"varied-{days}"
    file.write_text("".join(_question(dice, dice.choice(users), days) for _ in range(QUESTIONS)))
    return Requests(file, SOME_SLOT)


def _question(dice: random.Random, user: int, days: int) -> str:
    # The first eight hours: a day that begins there holds 15:00 to 17:30 in one piece.
    first = dice.randrange(FIRST_DAYS) * calendars.DAY + dice.randrange(480) * calendars.MINUTE
    start = calendars.START + first
    query: dict[str, object] = {
        "start": calendars.text(start),
        "end": calendars.text(start + days * calendars.DAY),
        "slotDuration": dice.choice(DURATIONS),
        "padding": dice.choice(PADDINGS),
    }
    window = dice.choice(WINDOWS)
    if window:
        query |= {"earliestTimeEachDay": window[0], "latestTimeEachDay": window[1]}
    return f"/v1/users/{people.name(user)}/scheduling?{urlencode(query)}\t{dice.choice(ZONES)}\n"


def rate(port: int, requests: Requests, key: str, seconds: float, *, first: int = 0) -> float:
    """Answers in a second under pressure, each of them checked."""
    if WRK:
        command = [WRK, "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "-s", str(SCRIPT)]
        command += [f"http://127.0.0.1:{port}/", "--", str(requests.file), key, requests.expected, str(first)]
    else:
        command = _generator(port, requests, key, seconds, first)
        command += ["--connections", str(CONNECTIONS)]
    result = _result(command)
    assert not result["bad"], f"{result['bad']} of {result['requests']} answers were not as they should be"
    return float(result["requests"]) / float(result["seconds"])


def paced(port: int, requests: Requests, key: str, seconds: float, rate: float) -> list[tuple[float, int]]:
    """Seconds since it was due and status of each answer."""
    result = _result([*_generator(port, requests, key, seconds, 0), "--rate", str(rate)])
    answers = [(float(took), int(status)) for took, status in result["answers"]]
    refused = sum(status != 200 for _, status in answers)
    assert result["bad"] == refused, "an answer with status 200 was not as it should be"
    return answers


def _generator(port: int, requests: Requests, key: str, seconds: float, first: int) -> list[str]:
    command = [sys.executable, "-m", "tests.benchmarks.load", "--port", str(port), "--key", key]
    command += ["--requests", str(requests.file), "--expect", requests.expected]
    return [*command, "--seconds", str(seconds), "--first", str(first)]


def _result(command: Sequence[str]) -> dict[str, Any]:
    """The last line of what it prints."""
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = orjson.loads(finished.stdout.splitlines()[-1])
    return result
