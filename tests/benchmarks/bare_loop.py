"""The baseline of a cold read's processor time: the same calls by the same transport in threads, and no more.

``python -m tests.benchmarks.bare_loop`` prints the seconds of processor time of one process.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor

import orjson

from providers.http import transport
from tests.benchmarks import calendars
from tests.benchmarks.provider import GOOGLE, MICROSOFT, QUESTION

SECONDS = 60.0
START, END = (calendars.text(calendars.START + days * calendars.DAY) for days in (0, 7))
WEEK = f"startDateTime={START}&endDateTime={END}"
BATCH = orjson.dumps(
    {
        "requests": [
            {"id": "settings", "method": "GET", "url": "/me/mailboxSettings"},
            {"id": "0", "method": "GET", "url": f"/me/calendar/calendarView?{WEEK}"},
        ]
    }
)


def read(address: str, person: int) -> None:
    """One read of a person's calendar: half of them are at Google, half at Microsoft."""
    path, body = (MICROSOFT, BATCH) if person % 2 else (GOOGLE, QUESTION)
    headers = {
        "Authorization": f"Bearer person-{person}",
        "Content-Type": "application/json",
        "User-Agent": "almanac",
    }
    url = f"{address}{path.decode()}"
    response, content = transport.exchange("POST", url, headers, body, deadline=time.monotonic() + SECONDS)
    assert response.status_code == 200, content
    orjson.loads(content)


def main() -> None:
    """Open the connections in a first round, then measure a second one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--reads", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    given = parser.parse_args()
    with ThreadPoolExecutor(given.threads) as threads:
        list(threads.map(lambda person: read(given.address, person), range(given.threads)))
        began = time.process_time()
        list(threads.map(lambda person: read(given.address, person), range(given.reads)))
        print(time.process_time() - began)


if __name__ == "__main__":
    main()
