"""Webhooks: endpoints, their deliveries, and sending one again."""

from __future__ import annotations

import pytest

from store.sql.models import WebhookEndpoint, now
from store.sql.queries import deliveries, webhooks
from store.sql.queries.webhooks import Event
from tests.dashboard.audit_records import actions
from tests.dashboard.installations import Installation
from tests.dashboard.visiting import words
from tests.store.webhook_world import WebhookWorld

URL = "https://hooks.example.com/almanac"
EVENTS = [event.value for event in Event]
NOBODY = "wh_000000000000000000000000"
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
    monkeypatch.setattr("workers.webhooks.ssrf_guard.socket.getaddrinfo", lambda *_, **__: [])

    def send(**changed):
        page = here.browser.get("/webhooks/new")
        form = {"url": URL, "events": EVENTS, "ticket": page.html.find("input", {"name": "ticket"})["value"]}
        return here.browser.post("/webhooks/new", form | changed)

    return send


def stored(here) -> list[tuple[str, list[str], int | None]]:
    with here.stores.database.reading() as session:
        return [(each.url, each.events, each.organization_id) for each in webhooks.page(session, within=None)]


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


def test_without_any_it_says_what_to_do(here):
    assert words(here.browser.get("/webhooks").html.select_one(".empty h2")) == "No webhook yet"


def test_endpoints_are_shown_with_the_counts_of_their_deliveries(here, world):
    own = world.organization("own")
    one, two = world.endpoint(), world.endpoint(within=own, events=["connection.expired"])
    for name in ("ada", "bob"):
        world.record(Event.CONNECTION_EXPIRED, world.connection(name, own))
    world.succeed(world.claim(one))
    world.fail(world.claim(one))
    with here.stores.database.writing() as session:
        session.get_one(WebhookEndpoint, two).disabled_at = now()

    page = here.browser.get("/webhooks")

    found = {id_of(row): [words(each) for each in row.find_all("td")] for row in rows(page)}
    assert found[one][0] == "all users"
    assert found[one][2] == "enabled"
    assert found[one][3:6] == ["1", "1", "0"]
    assert found[two][:2] == ["own", "connection.expired"]
    assert found[two][2].startswith("disabled since ")
    assert found[two][3:6] == ["2", "0", "0"]


def test_endpoints_are_listed_in_pages(here, world):
    ids = sorted(world.endpoint() for _ in range(27))

    first = here.browser.get("/webhooks")
    rest = here.browser.get(first.html.find("a", rel="next")["href"])

    shown = [id_of(row) for page in (first, rest) for row in rows(page)]
    assert (shown, len(rows(first))) == (ids, 25)


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


def test_a_form_that_created_no_webhook_may_be_sent_again(here, new):
    ticket = here.browser.get("/webhooks/new").html.find("input", {"name": "ticket"})["value"]

    with here.locked():
        assert new(ticket=ticket).status == 503
    assert new(ticket=ticket, organization="nowhere").status == 400
    assert new(ticket=ticket).status == 200
    assert new(ticket=ticket).status == 409


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


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
def test_nothing_private_is_registered(here, new, monkeypatch, address):
    found = [(2, 1, 6, "", (address, 443))]
    monkeypatch.setattr("workers.webhooks.ssrf_guard.socket.getaddrinfo", lambda *_, **__: found)

    page = new()

    assert page.error_of("url") == "URL must not lead to a private or loopback address."
    assert stored(here) == []


def test_the_number_of_webhooks_is_limited(here, new, monkeypatch):
    monkeypatch.setattr(webhooks, "MOST_ENDPOINTS", 1)
    new()

    page = new()

    assert page.status == 400
    assert page.notices[0].startswith("There are 1 webhooks already: delete one")
    assert len(stored(here)) == 1


def test_what_was_entered_is_text(new):
    page = new(url=ODD, organization=ODD)

    assert page.status == 400
    assert page.html.find(id="f-url")["value"] == ODD
    assert page.html.find("b") is None


def test_one_is_deleted_with_its_log(here, world):
    endpoint = world.endpoint()
    world.record(Event.CONNECTION_EXPIRED, world.connection())
    (row,) = rows(here.browser.get("/webhooks"))
    assert row.find("form")["data-confirm"].startswith("Delete the webhook https://example.com/?")

    page = here.browser.do(row.find("form")["action"])

    assert page.notices == ["The webhook is deleted. Its pending deliveries are not sent."]
    assert stored(here) == []
    assert world.waiting() == []
    assert actions(here.stores, actor=Installation.ACTOR)[-1] == ("deleteWebhook", endpoint)


# --- deliveries


def test_deliveries_are_shown_the_newest_first_with_their_results(here, world):
    endpoint = world.endpoint()
    for name in ("ada", "bob", "eve"):
        world.record(Event.CONNECTION_EXPIRED, world.connection(name))
    world.succeed(world.claim(endpoint))
    with here.stores.database.writing() as session:
        claimed = deliveries.claim(session, endpoint, until=now())
        deliveries.failed(session, claimed, deliveries.Answer(500, "it failed"), again_at=None)

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


def test_a_refusal_without_a_text_shows_its_status_once(here, world):
    endpoint = world.endpoint()
    world.record(Event.CONNECTION_EXPIRED, world.connection())
    with here.stores.database.writing() as session:
        claimed = deliveries.claim(session, endpoint, until=now())
        deliveries.failed(session, claimed, deliveries.Answer(500, "answered 500"), again_at=None)

    (row,) = listed_deliveries(here.browser.get(f"/webhooks/{endpoint}"))

    assert row[1].count("answered 500") == 1


@pytest.mark.parametrize(("status", "count"), [("pending", 1), ("delivered", 0), ("failed", 0), ("other", 1)])
def test_deliveries_of_one_status(here, world, status, count):
    endpoint = world.endpoint()
    world.record(Event.CONNECTION_EXPIRED, world.connection())

    page = here.browser.get(f"/webhooks/{endpoint}", status=status)

    assert len(listed_deliveries(page)) == count
    if not count:
        assert words(page.html.select_one(".empty h2")) == "No deliveries"


def test_deliveries_are_read_in_pages_and_the_filter_stays(here, world):
    endpoint, connection = world.endpoint(), world.connection()
    for _ in range(30):
        world.record(Event.CONNECTION_EXPIRED, connection)

    first = here.browser.get(f"/webhooks/{endpoint}", status="pending")
    onward = first.html.find("a", rel="next")["href"]
    rest = here.browser.get(onward)

    assert (len(listed_deliveries(first)), len(listed_deliveries(rest))) == (25, 5)
    assert "status=pending" in onward
    ids = [words(each) for page in (first, rest) for each in page.html.select("details p code.wrapped")]
    assert ids == sorted((row.id for row in world.waiting()), reverse=True)


def test_a_delivery_is_sent_again_and_enables_its_endpoint(here, world):
    endpoint = world.endpoint()
    world.record(Event.CONNECTION_EXPIRED, world.connection())
    with here.stores.database.writing() as session:
        claimed = deliveries.claim(session, endpoint, until=now())
        deliveries.gone(session, claimed, deliveries.Answer(410, "it is gone"))
    page = here.browser.get(f"/webhooks/{endpoint}")
    assert "the endpoint answered 410 Gone" in page.notices[0]
    assert listed_deliveries(page)[0][0] == "failed"

    page = here.browser.do(page.html.select_one(".deliveries form")["action"])

    assert page.notices == ["It is being sent again. Reload this page in a moment to see the result."]
    assert listed_deliveries(page)[0][0] == "pending"
    assert actions(here.stores, actor=Installation.ACTOR)[-1] == (
        "replayDelivery",
        f"{endpoint}/{claimed.id}",
    )


def test_a_delivery_about_a_former_member_is_not_sent_again(here, world):
    own = world.organization("own")
    endpoint = world.endpoint(within=own)
    world.record(Event.CONNECTION_EXPIRED, world.connection("ada", own))
    action = here.browser.get(f"/webhooks/{endpoint}").html.select_one(".deliveries form")["action"]
    world.leave("ada", own)

    page = here.browser.do(action)

    assert page.notices == [
        "Delivery not found: it was deleted from the log, or its user has left the organization."
    ]
    assert actions(here.stores, actor=Installation.ACTOR)[-1][0] != "replayDelivery"


def test_what_a_receiver_says_is_text(here, world):
    endpoint = world.endpoint()
    world.record(Event.CONNECTION_EXPIRED, world.connection())
    (row,) = world.waiting()
    world.change(row.id, last_error=ODD, payload=row.payload | {"type": ODD})

    page = here.browser.get(f"/webhooks/{endpoint}")

    assert ODD in listed_deliveries(page)[0][1]
    assert ODD in page.html.select_one("pre").get_text()
    assert page.html.find("b") is None


@pytest.mark.parametrize("path", [f"/webhooks/{NOBODY}", "/webhooks/nothing"])
def test_an_endpoint_that_is_not_there_is_not_found(signed_in, path):
    page = signed_in.get(path)

    assert (page.status, page.heading) == (404, "Webhook not found")
    assert signed_in.post(f"{path}/delete").status == 404


@pytest.mark.parametrize("deed", ["new", f"{NOBODY}/delete", f"{NOBODY}/deliveries/x/replay"])
def test_a_form_without_its_token_does_nothing(signed_in, deed):
    assert signed_in.open("POST", f"/webhooks/{deed}", data={"url": URL}).status == 400


@pytest.mark.parametrize("path", ["/webhooks", "/webhooks/new", f"/webhooks/{NOBODY}"])
def test_they_require_a_sign_in(visitor, path):
    assert visitor.get(path).location == f"/dashboard/sign-in?after=/dashboard{path}"
