"""Goal 18: lists of 1 000 users beside the same lists of 100, in bytes and in time."""

from __future__ import annotations

from statistics import median

from store.sql.queries import api_keys, organizations
from store.stores import Stores
from tests.benchmarks.client import Client
from tests.benchmarks.installation import Installation
from tests.benchmarks.report import Report, progress, seconds, spread
from tests.benchmarks.scale import Scale

FEW, MANY = 100, 1_000
MIN_ROUNDS = 5
# Calls of one round, by the number of users: both take about the same time in total.
CALLS = {FEW: 10, MANY: 1}
PATHS = ("/v1/users", "/v1/organizations/{slug}/members")
LIMIT = 12


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """Both lists by a key that is bound to an organization of that size, interleaved."""
    keys = {size: _organization(installation, size) for size in (FEW, MANY)}
    rounds = max(MIN_ROUNDS, scale.rounds)
    with installation.running() as running:
        clients = {
            size: Client(running.client.port, {"Authorization": f"Bearer {key}"})
            for size, key in keys.items()
        }
        ratios: dict[str, list[float]] = {}
        report.table("The whole list without paging", "route", "users", "median", "min", "max", "size")
        for path in PATHS:
            times: dict[int, list[float]] = {FEW: [], MANY: []}
            sizes: dict[int, int] = {}
            for number in range(rounds):
                progress(f"lists: {path}, round {number + 1} of {rounds}")
                for size, client in clients.items():
                    answers = [client.get(path.format(slug=_slug(size))) for _ in range(CALLS[size])]
                    assert {answer.status for answer in answers} == {200}
                    sizes[size] = len(answers[-1].body)
                    assert len(answers[-1].json()["data"]) == size
                    times[size].append(median(answer.seconds for answer in answers))
            route = f"`GET {path.format(slug='{orgSlug}')}`"
            for size, taken in times.items():
                cells = (seconds(median(taken)), seconds(min(taken)), seconds(max(taken)))
                report.row(route, f"{size:,}", *cells, f"{sizes[size] / 1e3:,.0f} kB")
            ratios[route] = [many / few for many, few in zip(times[MANY], times[FEW], strict=True)]
            of_bytes = sizes[MANY] / sizes[FEW]
            report.verdict(18, f"{route} of {MANY:,} users, bytes", f"{FEW} users", of_bytes, LIMIT)
        for route, found in ratios.items():
            report.note(f"Ratio of the times of {route}, min / median / max: {spread(found)}.")
            report.verdict(18, f"{route} of {MANY:,} users, time", f"{FEW} users", median(found), LIMIT)


def _slug(size: int) -> str:
    return f"list-of-{size}"


def _organization(installation: Installation, size: int) -> str:
    """Make an organization of that many users; returns a key that is bound to it."""
    installation.organize(_slug(size), range(size))
    with Stores(installation.settings()) as stores, stores.database.writing() as session:
        number = organizations.ids(session, [_slug(size)], organization_id=None)[_slug(size)]
        return api_keys.create(
            session, prefix="alm_", name=_slug(size), organization_id=number, read_only=True
        )
