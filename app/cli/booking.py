"""The booking page of ``examples/booking``, and the backend that forwards its requests with the API key."""

from __future__ import annotations

import base64
import hashlib
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import requests
from flask import Flask, Response, abort, jsonify, request
from werkzeug.exceptions import HTTPException
from werkzeug.serving import WSGIRequestHandler, make_server

from app.http.browser_headers import PAGE_HEADERS

HOST = "127.0.0.1"
# In an installed package the examples are beside this file, in a checkout beside the package.
_HERE = Path(__file__).parent
_EXAMPLES = _HERE / "examples" if (_HERE / "examples").is_dir() else _HERE.parents[1] / "examples"
FOLDER = _EXAMPLES / "booking"

# In seconds; an answer of Almanac takes less.
TIMEOUT = 60
# How long the server may take to notice that it is to stop.
STOP_SECONDS = 0.05
MAX_BODY = 16 * 1024
A_DAY = timedelta(days=1)
NOT_ALLOWED = "The booking page may not send this request"
SENT_HEADERS = ("Content-Type", "Idempotency-Key", "X-Timezone")
ANSWER_HEADERS = ("Content-Type", "Retry-After", "X-Request-Id")
SCHEDULING_QUERY = {"start", "end", "slotDuration", "minimumNotice"}
EVENT_FIELDS = {"subject", "description", "start", "end", "attendees", "sendNotifications"}
# The inline script and the inline style of the page.
_INLINE = re.compile(rb"<(script|style)[^>]*>(.*?)</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Person:
    """A user who can be booked; ``email`` gets the invitation."""

    user: str
    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Offer:
    """What visitors can book: a meeting with the first of the team and one of the others.

    The page reads it as ``settings.json``. ``notice`` is in minutes, ``expiresIn`` in seconds. The hours of
    ``schedules`` are local times of ``timeZone``.
    """

    team: tuple[Person, ...]
    provider: str
    timeZone: str
    schedules: tuple[Mapping[str, Any], ...]
    calendarId: str = "primary"
    minutes: int = 30
    notice: int = 60
    days: int = 14
    expiresIn: int = 300


def create_app(service: str, key: str, offer: Offer) -> Flask:
    """The page and its backend. Requests go to Almanac at ``service``, if they are about the offer."""
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    # Not another name that resolves to this machine: its pages could read the answers.
    app.config["TRUSTED_HOSTS"] = [HOST, "localhost"]
    team = [each.user for each in offer.team]
    # As the page sends them.
    schedules = app.json.loads(app.json.dumps(offer.schedules))
    modules = {file.name: file.read_bytes() for file in (FOLDER / "almanac-client").glob("*.js")}
    addresses = {each.email for each in offer.team}

    @app.before_request
    def reject_other_sites() -> None:
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            abort(403, "Only the booking page may send this request")

    @app.get("/")
    def page() -> Response:
        content = (FOLDER / "index.html").read_bytes()
        return Response(content, mimetype="text/html", headers={"Content-Security-Policy": _policy(content)})

    @app.get("/almanac-client/<name>")
    def client(name: str) -> Response:
        if name not in modules:
            abort(404)
        return Response(modules[name], mimetype="text/javascript")

    @app.get("/settings.json")
    def settings() -> Response:
        return jsonify(asdict(offer))

    @app.post("/v1/scheduling")
    def scheduling() -> Response:
        body = _body()
        _require(set(request.args) <= SCHEDULING_QUERY and set(body) <= {"participants", "schedules"})
        _require(body["participants"] == [{"users": team[:1]}, {"users": team[1:], "required": 1}])
        _require(body["schedules"] == schedules)
        _require(request.args.get("slotDuration") == str(offer.minutes))
        _require(request.args.get("minimumNotice") == str(offer.notice))
        _require_near(request.args.to_dict(), offer)
        answer = _forward(service, key)
        if answer.status_code == 200:
            content = answer.get_json()
            # Visitors need not know the calendars of the team.
            content["failedUsers"] = [{"userId": each["userId"]} for each in content["failedUsers"]]
            answer.set_data(app.json.dumps(content))
        return answer

    @app.post("/v1/holds")
    def hold() -> Response:
        body = _body()
        _require(not request.args and set(body) <= {"users", "start", "end", "expiresIn"})
        users = body["users"]
        _require(len(users) == 2 and users[0] == team[0] and users[1] in team[1:])
        _require(body["expiresIn"] <= offer.expiresIn)
        _require_meeting(body, offer)
        return _forward(service, key)

    @app.delete("/v1/holds/<hold_id>")
    def release(hold_id: str) -> Response:
        # Nothing that a URL gives a meaning: the path is sent on.
        _require(re.fullmatch(r"[\w-]+", hold_id, re.ASCII) is not None)
        return _forward(service, key)

    @app.post(f"/v1/users/{team[0]}/calendar/events/{offer.provider}/{offer.calendarId}")
    def event() -> Response:
        body = _body()
        # Without a hold, any time could be booked.
        _require(set(request.args) == {"hold"} and set(body) <= EVENT_FIELDS)
        _require_meeting(body, offer)
        # The visitor and one of the team.
        invited = [each["email"] for each in body["attendees"]]
        _require(len(invited) <= 2 and all(set(each) == {"email"} for each in body["attendees"]))
        _require(len(set(invited) - addresses) == 1)
        return _forward(service, key)

    @app.after_request
    def protect(response: Response) -> Response:
        for name, value in PAGE_HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers["Cache-Control"] = "no-store"
        return response

    @app.errorhandler(KeyError)
    @app.errorhandler(TypeError)
    @app.errorhandler(ValueError)
    def malformed(_: Exception) -> tuple[Response, int]:
        return jsonify(data=None, error=NOT_ALLOWED), 403

    @app.errorhandler(HTTPException)
    def error(failed: HTTPException) -> tuple[Response, int]:
        return jsonify(data=None, error=failed.description), failed.code or 500

    return app


@contextmanager
def serving(app: Flask, port: int, host: str = HOST) -> Iterator[str]:
    """Serve the page from a thread; yields its address on this machine."""
    server = make_server(host, port, app, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(STOP_SECONDS,), daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Quiet(WSGIRequestHandler):
    """Logs no requests: the service at which they end does."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


def _body() -> dict[str, Any]:
    body = request.get_json()
    _require(isinstance(body, dict))
    return dict(body)


def _require(allowed: bool) -> None:
    if not allowed:
        abort(403, NOT_ALLOWED)


def _require_meeting(times: Mapping[str, Any], offer: Offer) -> None:
    """Allow a meeting of the offer's length, in the days that the page shows."""
    start, end = _require_near(times, offer)
    _require(start > datetime.now(UTC))
    _require(end - start == timedelta(minutes=offer.minutes))


def _require_near(times: Mapping[str, Any], offer: Offer) -> tuple[datetime, datetime]:
    """Allow a range from yesterday, as other zones have an earlier midnight, to the last day of the page."""
    start, end = (datetime.fromisoformat(times[name]) for name in ("start", "end"))
    now = datetime.now(UTC)
    _require(now - A_DAY <= start <= end <= now + offer.days * A_DAY + A_DAY)
    return start, end


def _forward(service: str, key: str) -> Response:
    """Send the request to Almanac with the API key; returns the answer."""
    headers = {name: request.headers[name] for name in SENT_HEADERS if name in request.headers}
    headers["Authorization"] = f"Bearer {key}"
    with requests.Session() as session:
        # Ignore the environment's proxies: the service is on this machine.
        session.trust_env = False
        try:
            answer = session.request(
                request.method,
                service + request.path,
                params=request.query_string,
                data=request.get_data(),
                headers=headers,
                timeout=TIMEOUT,
                allow_redirects=False,
            )
        except requests.RequestException:
            abort(502, "The service cannot be reached")
    kept = {name: answer.headers[name] for name in ANSWER_HEADERS if name in answer.headers}
    return Response(answer.content, answer.status_code, kept)


def _policy(page: bytes) -> str:
    """The Content-Security-Policy of a page: that of our pages, and the page's own script and style."""
    policy = PAGE_HEADERS["Content-Security-Policy"]
    for kind, content in _INLINE.findall(page):
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        policy = policy.replace(
            f"{kind.decode()}-src 'self'", f"{kind.decode()}-src 'self' 'sha256-{digest}'"
        )
    return policy
