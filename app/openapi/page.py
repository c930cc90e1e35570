"""The page at ``/v1/docs``: the OpenAPI document, shown by Scalar (https://github.com/scalar/scalar)."""

from __future__ import annotations

from pathlib import Path

from flask import Blueprint, Response, make_response, render_template

from app.http import security_headers
from app.http.route_facts import route_facts

blp = Blueprint("reference", __name__, template_folder="templates")

VERSION = "1.72.1"
# A quarter of its size. Every browser accepts gzip.
_RENDERER = Path(__file__).parents[1] / f"static/reference/scalar-{VERSION}.js.gz"


@blp.get("/docs")
@route_facts(needs_key=False)
def page() -> Response:
    """The page. It needs no API key; administrators enter theirs to try operations."""
    return security_headers.own_scripts_only(
        make_response(render_template("reference/page.html", version=VERSION))
    )


@blp.get("/docs/scalar.js")
@route_facts(needs_key=False)
def renderer() -> Response:
    """The script of Scalar. The address of a new version differs, so browsers may cache it for a year."""
    headers = {"Content-Encoding": "gzip", "Cache-Control": "max-age=31536000"}
    return Response(_RENDERER.read_bytes(), headers=headers, mimetype="text/javascript")
