"""``python -m tests.benchmarks [part ...]``: every number is a ratio to a baseline of the same run."""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections.abc import Callable

from tests.benchmarks import (
    cold,
    costs,
    doc,
    engine,
    explorer,
    feeds,
    flight,
    followed,
    groups,
    machine,
    memory,
    neighbour,
    profiles,
    user_lists,
    warm,
)
from tests.benchmarks.installation import Installation
from tests.benchmarks.report import Report, goals, progress
from tests.benchmarks.scale import FULL, QUICK, Scale

Run = Callable[[Installation, Report, Scale], None]

PARTS: dict[str, tuple[str, Run]] = {
    "engine": ("Engine", engine.run),
    "cold": ("Cold", cold.run),
    "costs": ("Costs of a read", costs.run),
    "warm": ("Warm", warm.run),
    "flight": ("Identical requests at once", flight.run),
    "memory": ("Memory", memory.run),
    "explorer": ("Explorer", explorer.run),
    "feeds": ("Calendar feeds", feeds.run),
    "followed": ("Followed calendars", followed.run),
    "groups": ("Groups", groups.run),
    "profiles": ("Profiles", profiles.run),
    "lists": ("Lists of users", user_lists.run),
    "neighbour": ("Beside a hostile tenant", neighbour.run),
}


def main() -> None:
    """Run the parts that are named, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("part", nargs="*", help=f"of {', '.join(PARTS)}; all of them without")
    parser.add_argument("--quick", action="store_true", help="small and few rounds: nothing is written")
    given = parser.parse_args()
    unknown = set(given.part) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    # Before anything is measured: a result without a place in the document would be lost.
    doc.require_blocks(PARTS)
    scale = QUICK if given.quick else FULL
    # As Ctrl-C does, so that started processes are ended on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    reports: list[Report] = []
    failed: list[str] = []
    with Installation(scale.sizes) as installation:
        about = machine.described(installation.redis, installation.database)
        print("\n".join(about))
        for part in given.part or PARTS:
            title, run = PARTS[part]
            report = Report(part)
            print(f"\n## {title}")
            try:
                run(installation, report, scale)
            except Exception:
                # The partial measurements of this part are dropped; the other parts can still be measured.
                traceback.print_exc()
                failed.append(part)
                continue
            reports.append(report)
            if not given.quick:
                doc.write([report], about, machine.stamp())
    print("\n" + "\n".join(goals([verdict for report in reports for verdict in report.verdicts])))
    if not given.quick:
        progress(f"written to {doc.DOCUMENT.relative_to(doc.ROOT)}")
    if failed:
        sys.exit(f"could not be measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
