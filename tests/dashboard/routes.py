"""Every path of the dashboard, read from the application, so that tests include new pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flask import Flask
from werkzeug.routing import Rule

from app.http.paths import providers_of

PREFIX = "dashboard."
# Endpoints that are no pages.
APART = frozenset({"dashboard.static"})

# A value for arguments of paths that names nothing; valid as text and as a number.
NOBODY = "987654321"


def rules(app: Flask, method: str) -> Iterator[Rule]:
    """The routes that take a method."""
    for rule in app.url_map.iter_rules():
        ours = rule.endpoint.startswith(PREFIX) and rule.endpoint not in APART
        if ours and method in (rule.methods or ()):
            yield rule


def path(rule: Rule, names: Mapping[str, str]) -> str:
    """The path of a route with these arguments.

    :raise KeyError: for an argument that is missing in ``names``
    """
    values = {name: names[name] for name in rule.arguments}
    if "provider" in values and values["provider"] not in (known := providers_of(rule)):
        values["provider"] = known[0]
    built = rule.build(values, append_unknown=False)
    assert built is not None
    return built[1]


def pages(app: Flask, method: str) -> Iterator[str]:
    """The paths that take a method, with arguments that name nothing."""
    for rule in rules(app, method):
        yield path(rule, dict.fromkeys(rule.arguments, NOBODY) | {"provider": "google"})
