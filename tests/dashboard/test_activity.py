"""The activity page, with counts and without any."""

from __future__ import annotations

import time

import pytest

from app.dashboard.activity import SPANS
from tests.app.days import DAY, meeting
from tests.conftest import stores_of
from tests.dashboard.visiting import words
from tests.installation.processes import running_redis


def figures(page) -> list[str]:
    return [words(each) for each in page.html.select(".figure")]


def rows(page, heading: str) -> dict[str, list[str]]:
    """The table of a section, by the first cell of each row."""
    section = page.html.find("h2", string=heading).find_parent("section")
    cells = [[words(cell) for cell in row.find_all(["th", "td"])] for row in section.select("tbody tr")]
    return {row[0]: row[1:] for row in cells}


def bars(page, title: str) -> int:
    figure = next(each for each in page.html.select("figure") if words(each.find("h2")) == title)
    return len(figure.select("svg.plot > rect"))


def test_failures_are_drawn_by_provider_and_reason_and_not_listed_again(install):
    here = install(broker_url="memory://")
    here.stores.counters.request("busy", "2xx", 0.01)
    here.stores.counters.failure("google", "rateLimited")

    page = here.browser.get("/activity")

    figure = next(each for each in page.html.select("figure") if "failures" in words(each.h2))
    assert "Google: the provider's limit is reached" in [words(each) for each in figure.select("li")]
    assert page.html.find(id="failures") is None


def test_requests_and_reads_are_shown_as_soon_as_they_are_done(worker, api, signed_in, sandbox, new_user):
    user = new_user(sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")]))
    before = signed_in.get("/activity")

    assert api.get(f"/users/{user}/calendar/busy", **DAY).status_code == 200
    assert api.get("/users/nobody-at-all/calendar/busy", **DAY).status_code == 404
    # Workers flush their counts every few seconds.
    give_up = time.monotonic() + 20
    while bars(page := signed_in.get("/activity"), "Reads from providers") == 0:
        assert time.monotonic() < give_up
        time.sleep(0.2)

    def busy(page) -> list[int]:
        return [
            int(each.replace(",", ""))
            for each in rows(page, "By group of routes").get("busy", ["0", "0", "0"])[:3]
        ]

    earlier = busy(before) if before.html.find("h2", string="By group of routes") else [0, 0, 0]
    assert [now - then for now, then in zip(busy(page), earlier, strict=True)] == [2, 1, 0]
    assert bars(page, "Requests") >= 1
    assert bars(page, "Calendars requested") >= 1


@pytest.mark.slow
def test_failures_are_named_by_provider_and_reason(worker, api, signed_in, sandbox, new_user):
    account = sandbox.account("microsoft", "bob@example.com")
    user = new_user(account)
    sandbox.fault(email="bob@example.com", status=403, reason="ErrorAccessDenied")

    assert api.get(f"/users/{user}/calendar/busy", **DAY).status_code in (403, 502)

    give_up = time.monotonic() + 20
    while "Microsoft" not in (page := signed_in.get("/activity")).text or "access is denied" not in page.text:
        assert time.monotonic() < give_up
        time.sleep(0.2)
    assert "Provider failures by reason" in page.text


@pytest.mark.parametrize("span", SPANS)
def test_each_span_is_a_page_and_its_plots_alone_are_part_of_it(signed_in, span):
    page = signed_in.get("/activity", span=span)
    part = signed_in.get("/activity/plots", headers={"HX-Request": "true"}, span=span)

    assert (page.status, page.heading) == (200, "Activity")
    assert words(page.html.select_one(".spans [aria-current]")) == SPANS[span].title
    assert part.status == 200
    assert "<html" not in part.text


def test_an_unknown_span_is_the_default(signed_in):
    page = signed_in.get("/activity", span="<b>")

    assert words(page.html.select_one(".spans [aria-current]")) == SPANS["3h"].title
    assert "<b>" not in page.text


def test_without_any_counts_the_page_explains_itself(new_app, settings, browser_of, administrator, tmp_path):
    """An app with a separate Redis without any counts."""
    folder = tmp_path / "r"
    folder.mkdir()
    with running_redis(folder, folder / "redis.sock"):
        app = new_app(redis_url=f"unix://{folder / 'redis.sock'}")
        page = browser_of(administrator, at=app).get("/activity")
        stores_of(app).close()

    assert "No requests yet" in page.text
    assert figures(page)[0] == "0"


def test_activity_without_redis_is_503_with_advice(new_app, settings, browser_of, administrator, app):
    signed = browser_of(administrator)
    away = new_app(redis_url="unix:///nowhere/redis.sock")
    signed.client.application, kept = away, signed.client.application
    try:
        page = signed.get("/activity")
    finally:
        signed.client.application = kept

    assert page.status == 503
    assert "/readyz" in page.text
