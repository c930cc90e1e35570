"""The end of a sign-in: the session, the audit record, and the page that follows."""

from __future__ import annotations

import re
import time
from urllib.parse import unquote

from flask import Response, make_response, request, session, url_for
from werkzeug.wrappers import Response as BaseResponse

from app.dashboard.sign_in import login_throttle, sessions
from app.schemas.fields import CONTROL
from app.services import services
from store.sql.models import Administrator
from store.sql.queries import administrators, audit

# The code of the second factor has to follow the password within this time.
CODE_SECONDS = 300

_PENDING = "second factor"
_DASHBOARD_PATH = re.compile(r"/dashboard(/[^?#\\]*)?(\?[^#]*)?")


def complete_sign_in(
    administrator: Administrator, response: BaseResponse, action: str = "signIn"
) -> Response:
    """Sign this browser in, as a known one, and answer with ``response``."""
    with services().stores.database.writing() as writing:
        audit.record(writing, actor=actor(administrator), action=action, subject=request.remote_addr or "")
    sessions.begin(administrator)
    return login_throttle.know_browser(administrator.name, make_response(response))


def remember_password_step(administrator: Administrator) -> None:
    """Remember in the browser's signed cookie that the password of this person was right."""
    session.clear()
    session[_PENDING] = [administrator.id, int(time.time()), administrator.security_stamp]


def pending_administrator() -> Administrator | None:
    """The person whose password was right a moment ago; None if their security stamp was replaced."""
    pending = session.get(_PENDING)
    if not pending:
        return None
    administrator_id, at, stamp = pending
    if not 0 <= time.time() - at <= CODE_SECONDS:
        return None
    with services().stores.database.reading() as reading:
        administrator = administrators.load(reading, administrator_id)
    return None if administrator is None or administrator.security_stamp != stamp else administrator


def actor(administrator: Administrator) -> str:
    """A person as the audit log names the actor."""
    return f"{administrator.role} {administrator.name}"


def next_url() -> str:
    """The page to open after signing in: a dashboard page from ``after``, else the overview.

    Other sites, and addresses outside the dashboard, are ignored.
    """
    path = request.args.get("after", "")
    has_dots = {".", ".."}.intersection(unquote(path.partition("?")[0]).split("/"))
    allowed = _DASHBOARD_PATH.fullmatch(path) and not CONTROL.search(path) and not has_dots
    return path if allowed else url_for("dashboard.overview")
