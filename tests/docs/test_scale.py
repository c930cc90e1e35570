"""The model of docs/operate/scale.md: its tables, and its predictions beside the measured figures."""

from __future__ import annotations

import re

import pytest

from tests.benchmarks import cost_model, pressure, steady
from tests.benchmarks.cost_model import TOLERANCE
from tests.docs.fences import ROOT

BENCHMARKS = (ROOT / "docs/engineering/benchmarks.md").read_text()

UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}


def table(heading: str) -> list[list[str]]:
    """The cells of the first table after a heading of the benchmarks, without its head."""
    _, found, after = BENCHMARKS.partition(heading)
    assert found, heading
    lines = after[after.index("\n|") + 1 :].splitlines()
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows[2:]


def number(cell: str) -> float:
    """A figure such as ``1,000``, ``2.24 s`` and ``16.54 (≤ 20)``, times in seconds."""
    found = re.match(r"([\d,.]+)(?: (s|ms|µs)\b)?", cell)
    assert found, cell
    return float(found[1].replace(",", "")) * UNITS.get(found[2] or "s", 1.0)


COLD = table("### Everything read without the cache, 128 reads in flight")


def test_the_tables_are_those_of_the_model():
    """`python -m tests.benchmarks.cost_model` writes them."""
    document = cost_model.DOCUMENT.read_text()

    assert cost_model.written(document) == document


@pytest.mark.parametrize("row", COLD, ids=lambda row: row[0])
def test_the_time_of_a_cold_request(row):
    members, _, measured, *_ = row

    predicted = cost_model.cold_seconds(int(number(members)), latency=0.2, in_flight=128)

    assert predicted == pytest.approx(number(measured), rel=TOLERANCE)


@pytest.mark.parametrize("row", COLD, ids=lambda row: row[0])
def test_the_processor_time_of_a_cold_request(row):
    members, for_each = int(number(row[0])), number(row[6])

    predicted = cost_model.cold_processor_seconds(members)

    assert predicted == pytest.approx(for_each * members, rel=TOLERANCE)


@pytest.mark.parametrize("row", table("### Organizations over a week"), ids=lambda row: row[0])
def test_the_time_of_a_cached_organization(row):
    members, measured, *_ = row

    assert cost_model.warm_seconds(int(number(members))) == pytest.approx(number(measured), rel=TOLERANCE)


def test_the_rate_of_a_cached_user():
    rates = {row[0]: number(row[1]) for row in table("### One of 400 users, load by wrk")}

    predicted = cost_model.warm_rate(rates["hello and one Redis GET"])

    assert predicted == pytest.approx(rates["Almanac, 7 d"], rel=TOLERANCE)


def test_the_provider_calls_under_steady_load():
    reads = {row[0]: number(row[1]) for row in table("### Seconds from due to answered")}

    predicted = cost_model.simulated_reads(
        rate=steady.RATE,
        users=steady.USERS,
        ttl=steady.TTL,
        seconds=30,
        days=steady.DAYS,
        first_days=pressure.FIRST_DAYS,
    )

    assert predicted == pytest.approx(reads["none"], rel=TOLERANCE)


def test_the_share_of_cached_answers_is_the_simulated_one():
    """With the same week each time, as the sizes assume."""
    reads = cost_model.simulated_reads(rate=40, users=50, ttl=5, seconds=600, days=6, first_days=1, bucket=7)

    assert 1 - reads / (40 * 600) == pytest.approx(cost_model.hit_share(40 / 50, 5), abs=0.02)


def test_the_counts_of_reads_and_requests():
    rows = {row[0]: [number(cell) for cell in row[1:5]] for row in table("### Costs of a cold read, org")}
    read = [cost_model.COLD_COMMANDS, cost_model.COLD_BYTES, cost_model.COLD_STATEMENTS]
    warm = [cost_model.WARM_COMMANDS, cost_model.WARM_BYTES]

    commands, _, size, statements = rows["cold read"]
    assert read == pytest.approx([commands, size, statements], rel=0.05)
    commands, _, size, statements = rows["warm request"]
    assert [*warm, 0.0] == pytest.approx([commands, size, statements], rel=0.05)


def test_the_memory_of_processes():
    (web, _, workers, _) = [
        number(cell) for cell in table("### Memory of two web and two worker processes")[0][1:]
    ]

    predicted = [2 * cost_model.WEB_MEMORY, 2 * cost_model.WORKER_MEMORY]
    assert predicted == pytest.approx([web, workers], rel=TOLERANCE)
