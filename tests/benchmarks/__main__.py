"""``python -m tests.benchmarks``: every number is a ratio to a baseline of the same run."""

from __future__ import annotations

from statistics import median

from tests.benchmarks import cold, writer
from tests.benchmarks.engine import Case
from tests.benchmarks.report import heading, row, seconds, verdict
from tests.benchmarks.timing import Times

BUSY = (10, 25, 50, 100, 1_000, 10_000, 100_000)
MEMBERS = (10, 100, 1_000, 10_000)
COLUMNS = ("engine", "plain sweep", "engine / sweep", "engine / two np.sort")


def main() -> None:
    print("# Engine: 30-minute slots, padding 10, windows 09-17 New York; medians of interleaved rounds")
    one_member()
    many_members()
    writing()
    reading()


def one_member() -> None:
    for overlaps in (0, 2):
        sweep: dict[int, list[float]] = {busy: [] for busy in BUSY}
        sorts: dict[int, list[float]] = {busy: [] for busy in BUSY}
        heading(f"One member, maxOverlaps {overlaps}", "busy periods", "range", *COLUMNS)
        for days in (30, 365):
            for busy in BUSY:
                times = Case.random(1, busy, days, overlaps).times()
                sweep[busy].append(times.ratio("engine", "sweep"))
                sorts[busy].append(times.ratio("engine", "sorts"))
                row(f"{busy:,}", f"{days} d", *cells(times))
        print()
        verdict(f"8, maxOverlaps {overlaps}, 100 000 busy beside two np.sort", max(sorts[100_000]), 3)
        verdict(f"8, maxOverlaps {overlaps}, 10 000 busy beside the sweep", max(sweep[10_000]), 0.06)
        verdict(f"8, maxOverlaps {overlaps}, below 50 busy beside the sweep", max(sweep[10] + sweep[25]), 1)


def many_members() -> None:
    for overlaps, limit in ((0, 0.12), (2, 0.25)):
        heading(f"Members of 200 busy periods, 30 days, maxOverlaps {overlaps}", "members", *COLUMNS)
        for members in MEMBERS:
            times = Case.random(members, 200, 30, overlaps).times(rounds=5)
            row(f"{members:,}", *cells(times))
            if members == 1_000:
                ratio = times.ratio("engine", "sweep")
        print()
        verdict(f"9, 1 000 members at maxOverlaps {overlaps} beside a sweep for each", ratio, limit)


def writing() -> None:
    heading("Slots as JSON", "slots", "written", "marshmallow + json", "faster by")
    slowest = float("inf")
    for members in (3, 30, 300):
        slots, times = writer.times(members)
        faster = times.ratio("marshmallow", "written")
        slowest = min(slowest, faster)
        row(
            f"{slots:,}",
            seconds(times.seconds("written")),
            seconds(times.seconds("marshmallow")),
            f"{faster:.0f} x",
        )
    print()
    verdict("10, writing slots beside marshmallow + json", slowest, 40, at_least=True)


def reading() -> None:
    """Organizations over HTTP through web, broker, workers and sandbox; every provider read takes 200 ms."""
    heading(
        "Slots with nothing cached",
        "members",
        "reads",
        "waiting alone",
        "first",
        "median",
        "ratio",
        "reads again",
    )
    worst = {}
    with cold.installation() as running:
        for members in (1, 10, 100, 200):
            measured = cold.measure(running, members)
            worst[members] = max(measured.ratio, measured.first / measured.ideal)
            row(
                str(members),
                str(measured.reads),
                seconds(measured.ideal),
                seconds(measured.first),
                seconds(median(measured.rounds)),
                f"{measured.ratio:.2f}",
                str(measured.reads_when_cached),
            )
    print()
    verdict("cold, 200 members beside waiting alone, the first request included", worst[200], 1.5)


def cells(times: Times) -> tuple[str, str, str, str]:
    return (
        seconds(times.seconds("engine")),
        seconds(times.seconds("sweep")),
        f"{times.ratio('engine', 'sweep'):.3f}",
        f"{times.ratio('engine', 'sorts'):.2f}",
    )


if __name__ == "__main__":
    main()
