"""Goal 14: the explorer's picture of an organization, beside the API call whose answer it draws."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import requests

from app.cli import administrator_setup
from store.stores import Stores
from tests.benchmarks import calendars, in_turn
from tests.benchmarks.client import HOST, Answer, Client
from tests.benchmarks.installation import Installation
from tests.benchmarks.questions import WEEK
from tests.benchmarks.report import Report
from tests.benchmarks.scale import Scale

MEMBERS = 50
SLUG = "explorer"
NAME, PASSWORD = "benchmarks", "fifty quiet calendars"
API, PICTURE = "the API call", "the picture"

DAY = datetime.fromtimestamp(calendars.START / 1000, UTC).date()
# Every day, as the API call asks for; the explorer alone leaves out weekends.
FORM = {"organization": SLUG, "day": f"{DAY}", "days": "7", "zone": "UTC", "window": "daily"}


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """Both over HTTP and warm, in turn, in every round."""
    installation.organize(SLUG, range(MEMBERS))
    with installation.running() as running:
        browser = signed_in(installation, running.client.port)
        calls: dict[str, Callable[[], Answer]] = {
            API: lambda: running.client.get(f"/v1/organizations/{SLUG}/scheduling", WEEK),
            PICTURE: lambda: browser.get("/dashboard/explorer/grid", FORM),
        }
        slots = same_slots(calls[API](), calls[PICTURE]())
        compared = in_turn.compare("explorer", calls, installation, scale)
    compared.table(report, f"{MEMBERS} members over a week, {slots:,} slots", "answer")
    ratio = compared.ratio(report, PICTURE, API)
    report.verdict(14, f"the explorer, {MEMBERS} members, 7 days", API, ratio, 2)


def signed_in(installation: Installation, port: int) -> Client:
    """A client with the cookie of an administrator."""
    with Stores(installation.settings()) as stores:
        administrator_setup.create(stores, NAME, PASSWORD)
    with requests.Session() as session:
        session.trust_env = False
        url = f"http://{HOST}:{port}/dashboard/sign-in"
        token = re.search(r'name="csrf_token" value="([^"]+)"', session.get(url, timeout=30).text)
        assert token is not None
        form = {"csrf_token": token[1], "name": NAME, "password": PASSWORD}
        answer = session.post(url, form, timeout=30, allow_redirects=False)
        assert answer.status_code == 303, answer.text
        return Client(port, {"Cookie": f"almanac={session.cookies['almanac']}", "HX-Request": "true"})


def same_slots(answer: Answer, picture: Answer) -> int:
    """How many slots both have, after the one that reads the calendars."""
    assert answer.status == picture.status == 200
    found = re.search(r'class="count">(\d+)<', picture.body.decode())
    slots = answer.body.count(b'"userId":')
    assert found is not None
    assert int(found[1]) == slots > 0
    return slots
