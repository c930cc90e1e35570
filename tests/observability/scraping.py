"""Scrapes ``/metrics`` and parses the answer as Prometheus does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

COUNTERS = ("counter", "histogram")


@dataclass(frozen=True)
class Scrape:
    """``samples`` by name and labels; ``kinds`` by the name of the metric."""

    samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    helps: dict[str, str] = field(default_factory=dict)
    counters: frozenset[tuple[str, frozenset[tuple[str, str]]]] = frozenset()

    def __call__(self, name: str, **labels: str) -> float | None:
        """One sample; None when there is none."""
        return self.samples.get((name, frozenset(labels.items())))

    def sum(self, name: str, **labels: str) -> float:
        """All samples of a name that have these labels."""
        wanted = set(labels.items())
        return sum(value for (each, have), value in self.samples.items() if each == name and wanted <= have)

    def labels(self, name: str) -> set[str]:
        """The labels that samples of a name have."""
        return {label for each, have in self.samples if each == name for label, _ in have}

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.samples}


def parse(text: str) -> Scrape:
    families = list(text_string_to_metric_families(text))
    samples: dict[Any, float] = {}
    counters = set()
    for family in families:
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples, key
            samples[key] = sample.value
            if family.type in COUNTERS:
                counters.add(key)
    kinds = {family.name: family.type for family in families}
    helps = {family.name: family.documentation for family in families}
    return Scrape(samples, kinds, helps, frozenset(counters))


def scrape(made: Any, **more: Any) -> Scrape:
    """The current metrics of an installation."""
    answer = made.session.get(f"{made.url}/metrics", timeout=30, **more)
    assert answer.status_code == 200, answer.text
    return parse(answer.text)
