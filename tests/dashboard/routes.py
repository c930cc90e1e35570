"""Every path of the dashboard, read from the application, so that a page added later cannot be forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flask import Flask
from werkzeug.routing import Rule

PREFIX = "dashboard."
# Of no page of their own.
APART = frozenset({"dashboard.static"})

# What stands for an argument of a path where there is nothing of that name: a text, and a number too.
NOBODY = "987654321"


def rules(app: Flask, method: str) -> Iterator[Rule]:
    """The routes that take a method."""
    for rule in app.url_map.iter_rules():
        ours = rule.endpoint.startswith(PREFIX) and rule.endpoint not in APART
        if ours and method in (rule.methods or ()):
            yield rule


def path(rule: Rule, names: Mapping[str, str]) -> str:
    """The path of a route in such names.

    :raise KeyError: naming an argument that has no value: add it to the names
    """
    built = rule.build({name: names[name] for name in rule.arguments}, append_unknown=False)
    assert built is not None
    return built[1]


def pages(app: Flask, method: str) -> Iterator[str]:
    """Paths that take a method, in the names of nobody."""
    for rule in rules(app, method):
        yield path(rule, dict.fromkeys(rule.arguments, NOBODY) | {"provider": "google"})
