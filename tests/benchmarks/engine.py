"""Goals 8 to 11: the engine and the writer, beside plain Python, two sorts, marshmallow and a competitor."""

from __future__ import annotations

from tests.benchmarks import competitor, writer
from tests.benchmarks.cases import Case
from tests.benchmarks.installation import Installation
from tests.benchmarks.report import Plot, Report, progress, seconds
from tests.benchmarks.scale import Scale
from tests.benchmarks.timing import Times

BUSY = (10, 25, 50, 100, 1_000, 10_000, 100_000)
MEMBERS = (10, 100, 1_000, 10_000)
COLUMNS = ("engine", "plain sweep", "engine / sweep", "engine / two np.sort")


def run(_: Installation, report: Report, scale: Scale) -> None:
    """All of it in this process."""
    report.note(
        "30-minute slots, padding 10, windows 09:00 to 17:00 New York; medians of interleaved rounds."
    )
    one_member(report, scale)
    many_members(report, scale)
    writing(report, scale)
    beside_a_rival(report, scale)


def one_member(report: Report, scale: Scale) -> None:
    """Goal 8."""
    for overlaps in (0, 2):
        progress(f"engine: one member, maxOverlaps {overlaps}")
        sweep: dict[int, list[float]] = {busy: [] for busy in BUSY}
        sorts: dict[int, list[float]] = {busy: [] for busy in BUSY}
        taken: dict[int, Times] = {}
        report.table(f"One member, maxOverlaps {overlaps}", "busy periods", "range", *COLUMNS)
        for days in (30, 365):
            for busy in BUSY:
                times = taken[busy] = Case.random(1, busy, days, overlaps).times(scale.rounds)
                sweep[busy].append(times.ratio("engine", "sweep"))
                sorts[busy].append(times.ratio("engine", "sorts"))
                report.row(f"{busy:,}", f"{days} d", *cells(times))
        if not overlaps:
            report.plot(_plot(taken))
        with_overlaps = f"maxOverlaps {overlaps}"
        report.verdict(8, f"100 000 busy, {with_overlaps}", "two np.sort", max(sorts[100_000]), 3)
        report.verdict(8, f"10 000 busy, {with_overlaps}", "plain sweep", max(sweep[10_000]), 0.06)
        report.verdict(8, f"below 50 busy, {with_overlaps}", "plain sweep", max(sweep[10] + sweep[25]), 1)


def many_members(report: Report, scale: Scale) -> None:
    """Goal 9."""
    for overlaps, limit in ((0, 0.12), (2, 0.25)):
        progress(f"engine: many members, maxOverlaps {overlaps}")
        report.table(f"Members of 200 busy periods, 30 days, maxOverlaps {overlaps}", "members", *COLUMNS)
        for members in MEMBERS:
            if members > max(scale.sizes):
                continue
            times = Case.random(members, 200, 30, overlaps).times(scale.rounds)
            report.row(f"{members:,}", *cells(times))
            if members == 1_000:
                ratio = times.ratio("engine", "sweep")
        report.verdict(9, f"1 000 members, maxOverlaps {overlaps}", "a sweep for each", ratio, limit)


def writing(report: Report, scale: Scale) -> None:
    """Goal 10."""
    progress("engine: writing slots")
    report.table("Slots as JSON", "slots", "written", "marshmallow + json", "faster by")
    slowest = float("inf")
    for members in (3, 30, 300):
        slots, times = writer.times(members, scale.rounds)
        faster = times.ratio("marshmallow", "written")
        slowest = min(slowest, faster)
        both = seconds(times.seconds("written")), seconds(times.seconds("marshmallow"))
        report.row(f"{slots:,}", *both, f"{faster:.0f} x")
    report.verdict(10, "writing slots, faster by", "marshmallow + json", slowest, 40, at_least=True)


def beside_a_rival(report: Report, scale: Scale) -> None:
    """Goal 11."""
    progress("engine: beside slotify-scheduling")
    slots, times = competitor.times(scale.rounds)
    faster = times.ratio("competitor", "engine")
    report.table(
        f"{competitor.BUSY} busy periods, {competitor.DAYS} days, the same {slots} slots",
        *("engine", "slotify-scheduling", "faster by"),
    )
    report.row(seconds(times.seconds("engine")), seconds(times.seconds("competitor")), f"{faster:,.0f} x")
    report.verdict(11, "the same slots, faster by", "slotify-scheduling", faster, 1_000, at_least=True)


def cells(times: Times) -> tuple[str, str, str, str]:
    """A row's figures."""
    return (
        seconds(times.seconds("engine")),
        seconds(times.seconds("sweep")),
        f"{times.ratio('engine', 'sweep'):.3f}",
        f"{times.ratio('engine', 'sorts'):.2f}",
    )


def _plot(taken: dict[int, Times]) -> Plot:
    """The longest range."""
    names = {"engine": "engine", "sweep": "plain sweep", "sorts": "two np.sort"}
    lines = {
        label: [(float(busy), times.seconds(name)) for busy, times in taken.items()]
        for name, label in names.items()
    }
    return Plot("engine", "One member, 365 days", "busy periods", "seconds", lines)
