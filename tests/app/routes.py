"""Every route of the API, read from the application, as paths that can be called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flask import Flask

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
NOBODY = {
    "userId": "nobody",
    "orgSlug": "nowhere",
    "provider": "google",
    "webhookId": f"wh_{0:024x}",
    "deliveryId": f"msg_{0:032x}",
}


class Route(NamedTuple):
    method: str
    path: str
    endpoint: str


def routes(app: Flask, **names: str) -> Iterator[Route]:
    """Routes below ``/v1``, in the names of nobody or of those given."""
    for rule in app.url_map.iter_rules():
        if not rule.rule.startswith("/v1/"):
            continue
        values = {name: (NOBODY | names).get(name, "x") for name in rule.arguments}
        built = rule.build(values, append_unknown=False)
        assert built is not None
        for method in METHODS:
            if method in (rule.methods or ()):
                yield Route(method, built[1].removeprefix("/v1"), rule.endpoint)
