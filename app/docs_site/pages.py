"""The pages of the documentation, as they were built. They need no sign-in and no key."""

from __future__ import annotations

from pathlib import PurePosixPath

from flask import Blueprint, Response, abort, redirect, render_template, send_from_directory, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from app.docs_site import site
from app.http.browser_headers import PAGE_HEADERS, policy_of

blp = Blueprint("docs", __name__)

_NOT_BUILT = "The documentation is not built. In a source checkout, `make docs` builds it.\n"


@blp.after_request
def _protect(response: Response) -> Response:
    for name, value in PAGE_HEADERS.items():
        response.headers.setdefault(name, value)
    if response.status_code < 400:
        response.headers["Cache-Control"] = "public, max-age=300"
    return response


@blp.errorhandler(404)
def not_found(error: NotFound) -> ResponseReturnValue:
    """The page of errors: browsers open these addresses, and programs do not."""
    hint = "It may have been renamed. The menu of the documentation shows what there is."
    return render_template("dashboard/error.html", title="Not found", hint=hint, code=404), 404


@blp.get("")
def index() -> ResponseReturnValue:
    """Redirect to the first page: links on it are relative to its folder."""
    return redirect(url_for("docs.page"))


@blp.get("/", defaults={"path": ""})
@blp.get("/<path:path>")
def page(path: str) -> ResponseReturnValue:
    """A page of the site, or a file that pages load."""
    if not site.is_built():
        return Response(_NOT_BUILT, 503, mimetype="text/plain")
    if path in site.MOVED:
        return redirect(url_for("docs.page", path=site.MOVED[path]), 301)
    if ".." in PurePosixPath(path).parts:
        abort(404)
    name = site.file_of(path)
    if name is None and site.is_page(path):
        return redirect(url_for("docs.page", path=f"{path}/"))
    if name is None:
        abort(404)
    response = send_from_directory(site.FOLDER, name)
    if name.endswith(".html"):
        response.headers["Content-Security-Policy"] = policy_of((site.FOLDER / name).read_bytes())
    return response
