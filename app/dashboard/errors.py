"""Errors as pages: one sentence, and what to do."""

from __future__ import annotations

import logging

from flask import Response, redirect, request, url_for
from flask.typing import ResponseReturnValue
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from app.dashboard.blueprint import blp, page
from app.dashboard.csrf import ForgedRequest
from app.dashboard.sign_in import sessions
from app.http.errors import ApiError, overloaded
from app.http.requests import request_id, route
from workers.fanout.admission import Overloaded

log = logging.getLogger(__name__)

_WHAT_TO_DO = {
    400: "Go back, correct the error, and send it again.",
    403: "Your role does not permit this. An administrator can do it, or give you another role.",
    404: "It may have been renamed or deleted.",
    405: "Go back and try again.",
    429: "Wait a moment, then try again.",
    502: "The provider did not answer as it should. Try again in a moment.",
    503: "Check that the database, Redis and a worker are running: /readyz says which is missing.",
}
_NAMES = {
    403: "Not permitted",
    404: "Not found",
    405: "Not possible",
    413: "Too large",
    429: "Too many",
    503: "Out of service",
}


@blp.errorhandler(ForgedRequest)
def _stale_form(error: ForgedRequest) -> Response:
    return _page(400, "This form is no longer valid", "Go back, reload the page, and send it again.")


@blp.errorhandler(HTTPException)
def _refused(error: HTTPException) -> ResponseReturnValue:
    code = error.code or 500
    if code == 404 and request.path == "/":
        return redirect(url_for("dashboard.overview"))
    response = _page(code, _NAMES.get(code, error.name), _WHAT_TO_DO.get(code, "Go back and try again."))
    if isinstance(error, MethodNotAllowed):
        response.allow.update(error.valid_methods or ())
    return response


@blp.errorhandler(ApiError)
def _answered(error: ApiError) -> Response:
    return _page(error.status, error.error, _WHAT_TO_DO.get(error.status, "Go back and try again."))


@blp.errorhandler(Overloaded)
def _overloaded(error: Overloaded) -> Response:
    return _answered(overloaded(error))


@blp.errorhandler(RedisError)
@blp.errorhandler(BrokerError)
@blp.errorhandler(OperationalError)
@blp.errorhandler(InterfaceError)
@blp.errorhandler(PoolTimeout)
def _out_of_service(error: Exception) -> Response:
    cause = type(error).__name__
    line = "request failed, out of service: %s %s, request %s: %s"
    log.error(line, request.method, route(), request_id(), cause)
    return _page(503, "The service is not available for a moment", _WHAT_TO_DO[503])


@blp.errorhandler(Exception)
def _failed(error: Exception) -> Response:
    log.error("request failed: %s %s, request %s", request.method, route(), request_id(), exc_info=error)
    return _page(
        500, "Something went wrong on our side", f"See the log entry with the request id {request_id()}."
    )


def _page(status: int, title: str, hint: str) -> Response:
    if status == 404 and sessions.administrator() is not None:
        hint = f"{hint} The lists in the menu show what there is."
    return page("error.html", status, title=title, hint=hint, code=status)
