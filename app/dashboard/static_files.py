"""The files of the pages: browsers keep each for as long as it stays as it is."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from flask import Blueprint, Request

FOLDER = "static"
ENDPOINT = "dashboard.static"

_HASH_DIGITS = 12
_VERSIONS = {
    each.name: hashlib.sha256(each.read_bytes()).hexdigest()[:_HASH_DIGITS]
    for each in (Path(__file__).parent / FOLDER).iterdir()
    if each.is_file()
}


def install(blp: Blueprint) -> None:
    """Every address of a file says which version of it is meant, so that old scripts meet no new page."""
    blp.url_defaults(_name_version)


def cache_control(request: Request) -> str:
    """How long a file may be kept: for ever under the name of its version, else for an hour."""
    version = _VERSIONS.get((request.view_args or {}).get("filename", ""))
    named = version is not None and request.args.get("v") == version
    return "public, max-age=31536000, immutable" if named else "public, max-age=3600"


def _name_version(endpoint: str, values: dict[str, Any]) -> None:
    if endpoint == ENDPOINT and (version := _VERSIONS.get(values.get("filename", ""))):
        values["v"] = version
