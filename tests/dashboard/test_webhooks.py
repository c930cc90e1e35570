"""Webhooks: endpoints, their deliveries, and sending one again."""

from __future__ import annotations

import pytest

from store.sql.models import WebhookEndpoint, now
from store.sql.queries import deliveries, webhooks
from store.sql.queries.webhook_events import WebhookEvent
from tests.dashboard.audit_records import actions
from tests.dashboard.installations import Installation
from tests.dashboard.visiting import words
from tests.store.webhook_world import WebhookWorld

URL = "https://hooks.example.com/almanac"
EVENTS = [event.value for event in WebhookEvent]
ODD = "<b onmouseover=alert(1)>x</b> שלום 📅"


@pytest.fixture
def here(install) -> Installation:
    """An installation that allows only public addresses, and has no worker that sends."""
    return install(webhooks_allow_private=False, broker_url="memory://")


@pytest.fixture
def world(here) -> WebhookWorld:
    return WebhookWorld(here.stores.database, here.stores.keyring)


@pytest.fixture
def new(here, monkeypatch):
    """Fill the form in and send it."""
    # No name is resolved by DNS.
    monkeypatch.setattr("providers.http.ssrf_guard.socket.getaddrinfo", lambda *_, **__: [])

    def send(**changed):
        page = here.browser.get("/webhooks/new")
        form = {"url": URL, "events": EVENTS, "ticket": page.html.find("input", {"name": "ticket"})["value"]}
        return here.browser.post("/webhooks/new", form | changed)

    return send


def stored(here) -> list[tuple[str, list[str], int | None]]:
    with here.stores.database.reading() as session:
        return [
            (each.url, each.events, each.organization_id)
            for each in webhooks.page(session, organization_id=None)
        ]


def rows(page):
    return page.html.select("tbody tr")


def id_of(row) -> str:
    """The endpoint's id in a row of the list."""
    return row.find("a")["href"].rsplit("/", 1)[1]


def listed_deliveries(page):
    """The deliveries of a page: the badge, and the text beside it."""
    listed = page.html.select(".deliveries > li")
    return [(words(each.select_one(".badge")), words(each.select_one(".delivery"))) for each in listed]


# --- endpoints


def test_endpoints_are_shown_with_the_counts_of_their_deliveries(here, world):
    own = world.organization("own")
    one, two = world.endpoint(), world.endpoint(organization_id=own, events=["connection.expired"])
    for name in ("ada", "bob"):
        world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection(name, own))
    world.fail(world.claim(one))
    world.succeed(world.claim(one))
    with here.stores.database.writing() as session:
        session.get_one(WebhookEndpoint, two).disabled_at = now()

    page = here.browser.get("/webhooks")

    found = {id_of(row): [words(each) for each in row.find_all("td")] for row in rows(page)}
    assert found[one][0] == "all users"
    assert found[one][1:5] == ["enabled", "1", "1", "0"]
    assert found[two][:2] == ["own", "disabled just now"]
    assert found[two][2:5] == ["2", "0", "0"]
    assert {id_of(row): words(row.select_one(".events")) for row in rows(page)}[two] == "connection.expired"
    failing = here.browser.get("/webhooks", show="failing")
    assert [id_of(row) for row in rows(failing)] == [two]
    assert "Failing 1" in [words(each) for each in failing.html.select(".filter a")]


def test_a_new_one_shows_its_secret_this_once(here, new):
    page = new(events=["connection.restored", "calendar.changed"])

    secret = words(page.html.find(id="secret"))
    assert (page.status, page.heading) == (200, "Your new webhook")
    assert secret.startswith("whsec_")
    assert page.headers["Cache-Control"] == "no-store"
    assert stored(here) == [(URL, ["calendar.changed", "connection.restored"], None)]
    own = page.html.select_one("a.button")["href"]
    for path in (own, "/webhooks"):
        assert secret not in here.browser.get(path).text
    assert actions(here.stores, actor=Installation.ACTOR)[-1] == ("createWebhook", own.rsplit("/", 1)[1])


def test_reloading_the_page_creates_no_second_webhook(here, new):
    ticket = here.browser.get("/webhooks/new").html.find("input", {"name": "ticket"})["value"]

    new(ticket=ticket)
    page = new(ticket=ticket)

    assert page.status == 409
    assert page.notices[0].startswith("This form was sent before, and no second webhook was made.")
    assert len(stored(here)) == 1


def test_the_content_of_events_is_sent_if_the_form_asks_for_it(here, new):
    new()
    new(content="yes")

    with here.stores.database.reading() as session:
        with_content = {each.id: each.content for each in webhooks.page(session, organization_id=None)}
    assert sorted(with_content.values()) == [False, True]
    (endpoint,) = (each for each, content in with_content.items() if content)
    page = here.browser.get(f"/webhooks/{endpoint}/edit")
    assert page.html.find(id="f-content").has_attr("checked")
    assert "with the content" in words(here.browser.get(f"/webhooks/{endpoint}").html.select_one("dl.facts"))

    page = here.browser.do(f"/webhooks/{endpoint}/edit", {"url": URL, "events": EVENTS})
    assert page.notices == ["The webhook is changed."]
    assert not here.browser.get(f"/webhooks/{endpoint}/edit").html.find(id="f-content").has_attr("checked")


def test_a_webhook_of_an_organization_gets_only_events_of_its_members(here, new, world):
    own = world.organization("own")

    new(organization="own")

    assert stored(here) == [(URL, EVENTS, own)]
    page = here.browser.get("/webhooks/new", organization="own")
    assert page.html.find(id="f-organization")["value"] == "own"
    assert [each["value"] for each in page.html.select("#o-organization option")] == ["own"]


@pytest.mark.parametrize(
    ("changed", "field", "complaint"),
    [
        ({"url": ""}, "url", "URL is required."),
        ({"url": "ftp://hooks.example.com/"}, "url", "URL must be an https URL."),
        ({"url": "http://hooks.example.com/"}, "url", "URL must be an https URL."),
        ({"url": "https://ada:pass@hooks.example.com/"}, "url", "URL must not hold a user or a password."),
        ({"url": "https://hooks.example.com/" + "x" * 2048}, "url", "URL must have 1 to 2048 characters."),
        ({"organization": "nobody"}, "organization", "Organization with this slug does not exist."),
        ({"organization": "No Slug"}, "organization", None),
        ({"events": []}, "events", "Events must include at least one."),
        ({"events": ["other.event"]}, "events", "Events must include at least one."),
    ],
)
def test_an_invalid_field_is_named_and_nothing_is_created(here, new, changed, field, complaint):
    page = new(**changed)

    error = words(page.html.find(id=f"e-{field}"))
    assert page.status == 400
    assert error == complaint or (complaint is None and error.startswith("Organization must have 3 to 128"))
    assert stored(here) == []
    # The form keeps its values after the error.
    assert page.html.find(id="f-url")["value"] == changed.get("url", URL)
    assert [each["value"] for each in page.html.select("[name=events][checked]")] == [
        each for each in changed.get("events", EVENTS) if each in EVENTS
    ]


def test_one_is_deleted_with_its_log(here, world):
    endpoint = world.endpoint()
    world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection())
    (row,) = rows(here.browser.get("/webhooks"))
    form = row.select_one("form[data-confirm]")
    assert form["data-confirm"].startswith("Delete the webhook https://example.com/?")

    page = here.browser.do(form["action"])

    assert page.notices == ["The webhook is deleted. Its pending deliveries are not sent."]
    assert stored(here) == []
    assert world.waiting() == []
    assert actions(here.stores, actor=Installation.ACTOR)[-1] == ("deleteWebhook", endpoint)


# --- deliveries


def test_deliveries_are_shown_the_newest_first_with_their_results(here, world):
    endpoint = world.endpoint()
    for name in ("ada", "bob", "eve"):
        world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection(name))
    world.succeed(world.claim(endpoint))
    with here.stores.database.writing() as session:
        claimed = deliveries.claim(session, endpoint, until=now())
        deliveries.failed(session, claimed, deliveries.AttemptResult(500, "it failed"), again_at=None)

    page = here.browser.get(f"/webhooks/{endpoint}")

    newest, middle, oldest = listed_deliveries(page)
    assert [newest[0], middle[0], oldest[0]] == ["pending", "failed", "delivered"]
    assert "connection.expired of eve" in newest[1]
    assert "0 attempts; next attempt" in newest[1]
    assert "1 attempt, the last" in middle[1]
    assert "answered 500: it failed" in middle[1]
    assert "answered 204; delivered" in oldest[1]
    assert '"userId": "eve"' in page.html.select_one("details pre").get_text()
    filters = [words(each) for each in page.html.select(".filter a")]
    assert filters == ["All 3", "Pending 1", "Delivered 1", "Failed 1"]


@pytest.mark.parametrize(("status", "count"), [("pending", 1), ("delivered", 0), ("failed", 0), ("other", 1)])
def test_deliveries_of_one_status(here, world, status, count):
    endpoint = world.endpoint()
    world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection())

    page = here.browser.get(f"/webhooks/{endpoint}", status=status)

    assert len(listed_deliveries(page)) == count
    if not count:
        assert words(page.html.select_one(".empty h2")) == "No deliveries"


def test_deliveries_are_read_in_pages_and_the_filter_stays(here, world):
    endpoint, connection = world.endpoint(), world.connection()
    for _ in range(105):
        world.record(WebhookEvent.CONNECTION_EXPIRED, connection)

    first = here.browser.get(f"/webhooks/{endpoint}", status="pending")
    onward = first.html.find("a", rel="next")["href"]
    rest = here.browser.get(onward)

    assert (len(listed_deliveries(first)), len(listed_deliveries(rest))) == (100, 5)
    assert "status=pending" in onward
    ids = [words(each) for page in (first, rest) for each in page.html.select("details p code.wrapped")]
    assert ids == sorted((row.id for row in world.waiting()), reverse=True)


def test_the_deliveries_refresh_themselves(here, world):
    endpoint = world.endpoint()
    log = here.browser.get(f"/webhooks/{endpoint}", status="failed").html.find(id="log")
    assert (log["hx-trigger"], log["hx-select"], log["hx-swap"]) == ("every 10s", "#log", "outerHTML")
    world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection())

    again = here.browser.get(log["hx-get"].replace("?status=failed", ""))

    assert len(listed_deliveries(again)) == 1
    # Later parts keep the filter, and refresh as well.
    assert here.browser.get(log["hx-get"]).html.find(id="log")["hx-get"] == log["hx-get"]


def test_a_delivery_is_sent_again_and_enables_its_endpoint(here, world):
    endpoint = world.endpoint()
    world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection())
    with here.stores.database.writing() as session:
        claimed = deliveries.claim(session, endpoint, until=now())
        deliveries.gone(session, claimed, deliveries.AttemptResult(410, "it is gone"))
    page = here.browser.get(f"/webhooks/{endpoint}")
    assert "the endpoint answered 410 Gone" in page.notices[0]
    assert listed_deliveries(page)[0][0] == "failed"

    page = here.browser.do(page.html.select_one(".deliveries form")["action"])

    assert page.notices[0] == "It is being sent again. The result appears here in a moment."
    assert page.notices[1].startswith("The last delivery failed just now")
    assert listed_deliveries(page)[0][0] == "pending"
    assert actions(here.stores, actor=Installation.ACTOR)[-1] == (
        "replayDelivery",
        f"{endpoint}/{claimed.id}",
    )


def test_a_delivery_about_a_former_member_is_not_sent_again(here, world):
    own = world.organization("own")
    endpoint = world.endpoint(organization_id=own)
    world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection("ada", own))
    action = here.browser.get(f"/webhooks/{endpoint}").html.select_one(".deliveries form")["action"]
    world.leave("ada", own)

    page = here.browser.do(action)

    assert page.notices == [
        "Delivery not found: it was deleted from the log, or its user has left the organization."
    ]
    assert actions(here.stores, actor=Installation.ACTOR)[-1][0] != "replayDelivery"


def test_each_attempt_is_shown_and_survives_sending_again(here, world):
    endpoint = world.endpoint()
    world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection("ada"))
    results = (
        deliveries.AttemptResult(503, "answered 503", milliseconds=1234),
        deliveries.AttemptResult(None, "no answer in time", milliseconds=10_000),
        deliveries.AttemptResult(None, "url must be public"),
    )
    for result in results:
        claimed = world.claim(endpoint)
        with world.database.writing() as session:
            deliveries.failed(session, claimed, result, again_at=now())
    here.browser.do(f"/webhooks/{endpoint}/deliveries/{claimed.id}/replay")
    again = world.claim(endpoint)
    with world.database.writing() as session:
        answer = deliveries.AttemptResult(204, None, milliseconds=80)
        deliveries.delivered(session, again, answer, most_attempts=5)

    page = here.browser.get(f"/webhooks/{endpoint}")

    # The latest first. Only one was made since it was sent again.
    shown = [[words(each) for each in row.find_all("td")] for row in page.html.select(".deliveries tbody tr")]
    assert [each[1:] for each in shown] == [
        ["80 ms", "204"],
        ["not sent", "no answer url must be public"],
        ["10,000 ms", "no answer no answer in time"],
        ["1,234 ms", "503"],
    ]
    assert "1 attempt," in listed_deliveries(page)[0][1]


def failing(world, endpoint, *users, within=()):
    """Give deliveries about these users up."""
    for user in users:
        world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection(user, *within))
        with world.database.writing() as session:
            claimed = deliveries.claim(session, endpoint, until=now())
            answer = deliveries.AttemptResult(503, "answered 503", f"{ODD} is down")
            deliveries.failed(session, claimed, answer, again_at=None)


def test_replay_of_failed_deliveries_skips_former_members(here, world):
    own = world.organization("own")
    endpoint = world.endpoint(organization_id=own)
    failing(world, endpoint, "ada", "bob", "eve", within=(own,))
    world.leave("eve", own)
    button = here.browser.get(f"/webhooks/{endpoint}").html.find("button", string="Send all 3 failed again")

    page = here.browser.do(button.find_parent("form")["action"])

    assert page.notices[0].startswith("2 deliveries are being sent again.")
    assert sorted(each[0] for each in listed_deliveries(page)) == ["failed", "pending", "pending"]
    assert actions(here.stores, actor=Installation.ACTOR)[-1] == ("replayFailedDeliveries", endpoint)
    again = here.browser.do(f"/webhooks/{endpoint}/deliveries/replay-failed")
    assert again.notices[0].startswith("No failed delivery can be sent again")


# --- settings


def test_a_test_event_is_sent_unless_the_webhook_is_paused(here, world):
    endpoint = world.endpoint(events=["hold.created"])

    page = here.browser.do(f"/webhooks/{endpoint}/test")
    assert page.notices == ["A test event is being sent. The result appears here in a moment."]
    assert "webhook.test" in listed_deliveries(page)[0][1]
    here.browser.do(f"/webhooks/{endpoint}/pause")
    page = here.browser.do(f"/webhooks/{endpoint}/test")

    assert page.notices[0] == "The webhook is paused: resume it, then send the test event."
    assert len(listed_deliveries(page)) == 1


def test_a_webhook_is_paused_and_resumed(here, world):
    endpoint = world.endpoint()

    page = here.browser.do(f"/webhooks/{endpoint}/pause")
    assert page.notices[0] == "The webhook is paused. Its deliveries wait."
    assert page.notices[1].startswith("Paused since")
    page = here.browser.do(f"/webhooks/{endpoint}/resume")

    assert page.notices == ["The webhook is enabled. Pending deliveries are being sent."]
    assert actions(here.stores, actor=Installation.ACTOR)[-2:] == [("changeWebhook", endpoint)] * 2


@pytest.fixture
def edit(here, monkeypatch):
    """Send the form of an endpoint with changes."""
    monkeypatch.setattr("providers.http.ssrf_guard.socket.getaddrinfo", lambda *_, **__: [])

    def send(endpoint, **changed):
        page = here.browser.get(f"/webhooks/{endpoint}/edit")
        chosen = [each["value"] for each in page.html.select("[name=events][checked]")]
        form = {"url": page.html.find(id="f-url")["value"], "events": chosen}
        return here.browser.do(f"/webhooks/{endpoint}/edit", form | changed)

    return send


def test_url_and_events_are_changed(here, world, edit):
    endpoint = world.endpoint(events=["calendar.changed", "connection.expired"])

    page = edit(endpoint, url=URL, events=["connection.expired"])

    assert page.notices == ["The webhook is changed."]
    assert stored(here) == [(URL, ["connection.expired"], None)]


def rotate(here, endpoint, overlap="86400"):
    page = here.browser.get(f"/webhooks/{endpoint}")
    ticket = page.html.find("input", {"name": "ticket"})["value"]
    return here.browser.post(f"/webhooks/{endpoint}/secret", {"overlap": overlap, "ticket": ticket}), ticket


@pytest.mark.parametrize("overlap", ["86400", "0"])
def test_a_new_secret_is_shown_once(here, world, overlap):
    endpoint = world.endpoint()

    page, ticket = rotate(here, endpoint, overlap)

    secret = words(page.html.find(id="secret"))
    assert (page.status, page.heading) == (200, "The new secret")
    assert secret.startswith("whsec_")
    assert secret != world.secrets[endpoint]
    assert ("signed by the old secret too" in page.text) == (overlap != "0")
    again = here.browser.do(f"/webhooks/{endpoint}/secret", {"overlap": overlap, "ticket": ticket})
    assert again.notices[0].startswith("This form was sent before")
    assert secret not in again.text
    reloaded = here.browser.get(here.browser.get(f"/webhooks/{endpoint}/secret").location)
    assert "A secret is shown once, when it is made." in reloaded.notices
    rotated = [each for each in actions(here.stores, actor=Installation.ACTOR) if "rotate" in each[0]]
    assert rotated == [("rotateWebhookSecret", endpoint)]


def test_a_form_that_created_no_webhook_may_be_sent_again(here, new):
    ticket = here.browser.get("/webhooks/new").html.find("input", {"name": "ticket"})["value"]

    with here.locked():
        assert new(ticket=ticket).status == 503
    assert new(ticket=ticket, organization="nowhere").status == 400
    assert new(ticket=ticket).status == 200
    assert new(ticket=ticket).status == 409
