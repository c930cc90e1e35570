"""A scrape has every metric that the Grafana dashboard queries and that the documentation lists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.http.requests import CLASSES
from app.observability.metrics import Exposition, QuotaUse, Records, Snapshot
from store.coordination.heartbeats import LiveProcesses
from store.coordination.provider_limits import Access, Circuit, CircuitState
from store.coordination.shares import Quota
from store.metrics.counters import BOUNDS, Cache, Counts, Histogram, Totals
from store.sql.queries.connections import ConnectionCounts
from store.sql.queries.organization_grants import GrantCounts
from tests.observability.scraping import parse
from workers.queues import Queue

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD = json.loads((DOCS / "operate/grafana" / "almanac.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]

METRIC = re.compile(r"\balmanac_\w+")
SELECTOR = re.compile(r"(almanac_\w+)\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)(=~|=)"([^"]*)"')
GROUPING = re.compile(r"by \(([^)]*)\)")


@pytest.fixture(scope="module")
def full():
    """A scrape of an installation in which every counted event has happened."""
    from prometheus_client import generate_latest

    one = Histogram((1,) * len(BOUNDS))
    counts = Counts(
        {("busy", status): one for status in CLASSES.values()},
        Cache(1, 1, 1),
        {"google": one},
        {"google": one},
        {("google", "rateLimited"): 1},
    )
    found = Snapshot(
        "1.0",
        Totals(counts, {("reads", "google"): 1.0}, {"asked": 1}),
        LiveProcesses({"worker1@a": (1, 64)}, 1.0),
        {Circuit("google", Access.READS): CircuitState(open=True, accounts=1)},
        {Quota.WAITING_READS: QuotaUse(1, 128)},
        {("google", "accessDenied"): 1},
        Records({"google": ConnectionCounts(1, 1)}, {"google": GrantCounts(1, 1)}, 1, 1, QuotaUse(1, 1000)),
        dict.fromkeys(Queue, 0),
    )
    return parse(generate_latest(Exposition(found)).decode())


def test_every_metric_of_the_dashboard_exists(full):
    asked = {name for expression in EXPRESSIONS for name in METRIC.findall(expression)}

    assert asked
    assert asked <= full.names


def test_every_label_that_is_matched_exists_with_such_a_value(full):
    matched = [
        (metric, *matcher)
        for expression in EXPRESSIONS
        for metric, inside in SELECTOR.findall(expression)
        for matcher in MATCHER.findall(inside)
    ]

    assert matched
    for metric, label, operator, wanted in matched:
        values = {dict(have).get(label) for name, have in full.samples if name == metric}
        for each in wanted.split("|") if operator == "=~" else [wanted]:
            assert each in values, (metric, label, each)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_labels_in_groupings_and_legends_exist(full, expression):
    labels = set.intersection(*(full.labels(name) for name in METRIC.findall(expression)))
    grouped = {label.strip() for group in GROUPING.findall(expression) for label in group.split(",")}

    assert grouped <= labels
    (legend,) = {
        target["legendFormat"]
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
        if target["expr"] == expression
    }
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= grouped


def test_counters_are_never_shown_bare(full):
    counters = {name for name, _ in full.counters}
    for expression in EXPRESSIONS:
        for name in counters & set(METRIC.findall(expression)):
            assert re.search(rf"rate\({name}(\{{[^}}]*\}})?\[", expression), expression


def test_documentation_lists_each_metric_with_kind_and_labels(full):
    text = (DOCS / "operate/observe.md").read_text()
    rows = re.findall(r"^\| `(almanac_\w+)` \| (\w+) \|([^|]*)\|", text, re.MULTILINE)

    told = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    found = {}
    for name, kind in full.kinds.items():
        sample = f"{name}_count" if kind == "histogram" else f"{name}_total" if kind == "counter" else name
        sample = sample if sample in full.names else name
        found[sample.removesuffix("_count") if kind == "histogram" else sample] = (kind, full.labels(sample))
    assert told == found


def test_a_worker_that_is_isolated_from_a_provider_is_reported():
    present = LiveProcesses(
        {"worker1@a": (1, 64), "worker2@a": (1, 64)},
        1.0,
        {"worker1@a": frozenset(["google"]), "worker2@a": frozenset()},
    )
    counts = Totals(Counts({}, Cache(0, 0, 0), {}, {}, {}), {}, {})
    found = Snapshot("1.0", counts, present, {}, {}, {}, None, None)
    (isolated,) = (each for each in Exposition(found).collect() if each.name == "almanac_worker_isolated")
    assert {(each.labels["worker"], each.labels["provider"]): each.value for each in isolated.samples} == {
        ("worker1@a", "google"): 1,
        ("worker1@a", "microsoft"): 0,
        ("worker2@a", "google"): 0,
        ("worker2@a", "microsoft"): 0,
    }
