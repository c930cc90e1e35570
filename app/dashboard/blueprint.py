"""The dashboard's blueprint: sign-in check, CSRF check, response headers and the page frame."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, Response, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.dashboard import csrf, static_files, template_filters
from app.dashboard.sign_in import roles, sessions
from app.http.browser_headers import PAGE_HEADERS
from app.http.requests import DASHBOARD
from app.http.routes import facts_of_request

blp = Blueprint(
    "dashboard",
    __name__,
    template_folder="templates",
    static_folder=static_files.FOLDER,
    static_url_path="/static",
)
static_files.install(blp)
template_filters.install(blp)
roles.install(blp)
blp.app_template_global("csrf_token")(csrf.token)


@blp.before_request
def _require_session() -> ResponseReturnValue | None:
    if request.endpoint == static_files.ENDPOINT:
        return None
    unknown = request.routing_exception is not None
    if not unknown:
        _refuse_nul()
        csrf.check()
    signed_in = sessions.load_session()
    if unknown or not facts_of_request().needs_sign_in:
        return None
    if signed_in:
        roles.require()
        return None
    if request.headers.get("HX-Request"):
        # htmx asked for a part of a page: send the whole page to the sign-in.
        to_sign_in = url_for("dashboard.sign_in", after=_shown_page())
        return Response(status=401, headers={"HX-Redirect": to_sign_in})
    after = request.full_path.rstrip("?") if request.method in ("GET", "HEAD") else _shown_page()
    return redirect(url_for("dashboard.sign_in", after=after), 303)


def _shown_page() -> str | None:
    """The path and query of the page that sent this request, for after the sign-in; None if not known."""
    try:
        sender = urlsplit(request.headers.get("HX-Current-URL") or request.referrer or "")
    except ValueError:
        return None
    if not f"{sender.path}/".startswith(f"{DASHBOARD}/"):
        return None
    return f"{sender.path}?{sender.query}" if sender.query else sender.path


def _refuse_nul() -> None:
    """Answer 404 when the path or the query holds a NUL, which PostgreSQL rejects in text."""
    query = [text for name, values in request.args.lists() for text in (name, *values)]
    if any("\0" in str(each) for each in (*(request.view_args or {}).values(), *query)):
        abort(404)


@blp.after_request
def _protect(response: Response) -> Response:
    response.headers.update(PAGE_HEADERS)
    if request.endpoint == static_files.ENDPOINT:
        response.headers["Cache-Control"] = static_files.cache_control(request)
    else:
        response.headers["Cache-Control"] = "no-store"
        response.vary.add("HX-Request")
    return response


def page(template: str, status: int = 200, **context: Any) -> Response:
    """Render a page, or a part of one, from a template below ``templates/dashboard``."""
    text = render_template(
        f"dashboard/{template}",
        administrator=sessions.administrator(),
        here=_section(),
        **context,
    )
    return Response(text, status, mimetype="text/html")


def _section() -> str:
    """The menu entry that this page belongs to."""
    first = request.path.removeprefix("/dashboard").strip("/").partition("/")[0]
    return {"": "overview", "audit": "audit_log", "delete-users": "users"}.get(first, first)


def done(sentence: str, endpoint: str, **values: Any) -> ResponseReturnValue:
    """Redirect to a page that reports a success."""
    flash(sentence, "good")
    return redirect(url_for(f"dashboard.{endpoint}", **values), 303)


def warned(sentence: str, endpoint: str, **values: Any) -> ResponseReturnValue:
    """Redirect to a page that reports a success with a warning."""
    flash(sentence, "warn")
    return redirect(url_for(f"dashboard.{endpoint}", **values), 303)


def failed(sentence: str, endpoint: str, **values: Any) -> ResponseReturnValue:
    """Redirect to a page that reports a failure and says what to do."""
    flash(sentence, "bad")
    return redirect(url_for(f"dashboard.{endpoint}", **values), 303)
