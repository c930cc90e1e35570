"""Static files, with a hash of the content in their address, so that browsers can cache them for ever."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from flask import Blueprint, Flask, Request, Response

FOLDER = "static"
ENDPOINT = "dashboard.static"

_HASH_DIGITS = 12
_DAY = 24 * 3600
_ICON = (Path(__file__).parent / "favicon.ico").read_bytes()
_VERSIONS = {
    each.name: hashlib.sha256(each.read_bytes()).hexdigest()[:_HASH_DIGITS]
    for each in (Path(__file__).parent / FOLDER).iterdir()
    if each.is_file()
}


def install_favicon(app: Flask) -> None:
    """Register the icon that browsers load for pages that name none, such as an answer of the API."""
    app.add_url_rule("/favicon.ico", endpoint="favicon", view_func=_favicon)


def install(blp: Blueprint) -> None:
    """Add the content hash to the address of every file, so that a new page never loads an old script."""
    blp.url_defaults(_add_version)


def cache_control(request: Request) -> str:
    """The ``Cache-Control`` header: for ever if the address has the current hash, else for an hour."""
    version = _VERSIONS.get((request.view_args or {}).get("filename", ""))
    named = version is not None and request.args.get("v") == version
    return "public, max-age=31536000, immutable" if named else "public, max-age=3600"


def _favicon() -> Response:
    return Response(_ICON, mimetype="image/x-icon", headers={"Cache-Control": f"public, max-age={_DAY}"})


def _add_version(endpoint: str, values: dict[str, Any]) -> None:
    if endpoint == ENDPOINT and (version := _VERSIONS.get(values.get("filename", ""))):
        values["v"] = version
