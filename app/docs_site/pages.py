"""The pages of the documentation. They need no sign-in and no key."""

from __future__ import annotations

from pathlib import PurePath

from flask import Blueprint, Response, abort, redirect, render_template, send_from_directory, url_for
from flask.typing import ResponseReturnValue

from app.docs_site.documents import FILES, FOLDER, GROUPS, NAMES, document
from app.http.security_headers import PAGE_HEADERS

blp = Blueprint("manual", __name__, template_folder="templates", static_folder="static")


@blp.after_request
def _protect(response: Response) -> Response:
    response.headers.update(PAGE_HEADERS)
    if response.status_code < 400:
        response.headers["Cache-Control"] = "public, max-age=300"
    return response


@blp.get("")
@blp.get("/")
def index() -> ResponseReturnValue:
    """Redirect to the first document."""
    return redirect(url_for("manual.page", name=NAMES[0]))


@blp.get("/<path:name>")
def page(name: str) -> ResponseReturnValue:
    """A document with the menu of all documents, or a file that a document shows or links to."""
    if PurePath(name).suffix in FILES:
        return send_from_directory(FOLDER, name)
    if name not in NAMES:
        abort(404)
    menu = [(heading, [document(each) for each in names]) for heading, names in GROUPS.items()]
    return render_template("manual/page.html", document=document(name), menu=menu)
