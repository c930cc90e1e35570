"""``python -m tests.soak [--minutes 5]``: a whole installation under mixed load, every answer compared."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import redis

from tests.benchmarks import machine, plots
from tests.benchmarks.report import progress
from tests.soak import document
from tests.soak.booking import BookingClient
from tests.soak.faults import Faults
from tests.soak.installation import SoakInstallation, soak_installation
from tests.soak.measures import Measures
from tests.soak.records import Records

# At the least; a third of the run when that is longer.
WARM_SECONDS = 20.0
# Until work in progress is over, and idle connections are closed.
REST_SECONDS = 12.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--quick", action="store_true", help="nothing is written")
    given = parser.parse_args()
    progress(f"starting an installation with {given.people} users, seed {given.seed}")
    with soak_installation(given.people, given.clients, given.seed) as made:
        run = soak(made, given.minutes, given.people, given.clients, given.seed)
    print("\n".join(document.lines(run)))
    if not given.quick:
        document.DOCUMENT.write_text("\n".join(document.lines(run)) + "\n")
        plots.draw(document.plot(run), document.PICTURE)
    if failings := run.failings():
        sys.exit("\n".join([f"The run has not passed, seed {given.seed}:", *failings]))


def soak(made: SoakInstallation, minutes: float, people: int, clients: int, seed: int) -> document.Run:
    """Let all clients work at once."""
    settings = made.almanac.settings
    connection = redis.Redis.from_url(settings.redis_url)
    records = Records()
    about = [machine.stamp(), *machine.described(connection, made.database)]
    with connection, Measures(made.almanac.parts, connection) as measures:
        everybody = [BookingClient(made, n, records, seed) for n in range(clients)]
        began = time.monotonic()
        with Faults(made, seed) as faults, ThreadPoolExecutor(clients) as threads:
            until = began + minutes * 60
            working = [threads.submit(each.run, until) for each in everybody]
            for each in working:
                each.result()
        took = time.monotonic() - began
        for each in everybody:
            each.check_connections()
        progress("at rest")
        time.sleep(REST_SECONDS)
        measures.take()
    warm = max(WARM_SECONDS, took / 3)
    deliveries = len(made.receiver.received)
    return document.Run(about, minutes, took, people, clients, records, measures, faults, deliveries, warm)


if __name__ == "__main__":
    main()
