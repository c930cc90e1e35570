"""The day of an operator: 40 users who cannot be booked, found by one upkeep round and right after a read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from selenium.webdriver.common.by import By

from app.cli import administrator_setup
from app.dashboard.overview import unread
from providers.sandbox.client import Sandbox
from store.sql.models import OAuthConnection, Organization, Role
from store.sql.queries import organizations
from store.stores import Stores
from tests import people, services
from tests.browser import window
from tests.browser.conftest import dashboard
from tests.browser.visitor import Pointer
from tests.conftest import settings_of
from tests.installation.processes import running_redis, running_worker
from tests.waiting import until
from workers.celery_app import create_celery

# Each test starts an installation, and reads 52 accounts.
pytestmark = pytest.mark.timeout(400)

PASSWORD = "seven quiet calendars"
COMPANY, DAY = "acme", "2026-12-03"

# The four of the review, each with its fault and what the pages say of it; None is a grant that was revoked.
FAULTS = {
    "bruno": (None, "ended"),
    "farah": ({"status": 429, "retry_after": 60}, "asks us to slow down"),
    "gabriel": ({"status": 403, "reason": "forbidden"}, "denies access"),
    "ines": ({"latency_ms": 30_000}, "in time"),
}
# Others with the same faults, except the slow one, which each take a thread of the worker for seconds.
TROUBLED = {
    **{name: fault for name, (fault, _) in FAULTS.items()},
    **{
        f"{name}.{number:02}": FAULTS[name][0]
        for name in ("bruno", "farah", "gabriel")
        for number in range(12)
    },
}
WELL = [f"well.{number:02}" for number in range(12)]

# The rows of a list: the name of each, and whether it has a red badge.
ROWS = """
return [...document.querySelectorAll("tbody tr")].map((each) => [
  each.querySelector("th[scope=row] a").innerText, each.querySelector(".badge.bad") !== null, each.innerText])
"""


@pytest.fixture
def visitor(browser):
    """With a pointer alone: the walk through the overview is made by keyboard too."""
    window.resize(browser, window.SIZES[0])
    return Pointer(browser)


@pytest.fixture
def office(environment, sandbox_process, tmp_path):
    """An installation of its own: its URL, its sandbox, and a function that runs an upkeep round."""
    services.chromium().require()
    sandbox = Sandbox(sandbox_process)
    sandbox.reset()
    # Long enough for all members at once on a busy machine, and shorter than the slow account.
    own = environment | {"ALMANAC_DATA_DIR": str(tmp_path), "ALMANAC_FANOUT_DEADLINE": "8"}
    settings = settings_of(own)
    with (
        running_redis(tmp_path, settings.redis_socket),
        Stores(settings) as stores,
    ):
        stores.database.upgrade()
        _people(stores, sandbox)
        for name, role in (("ada", Role.ADMINISTRATOR), ("vera", Role.VIEWER)):
            administrator_setup.create(stores, name, PASSWORD, role)
        with (
            running_worker(settings, own, "day"),
            dashboard(own) as url,
            create_celery(settings) as celery,
        ):

            def upkeep():
                celery.send_task("upkeep.check_accounts")
                until(lambda: len(_read(stores)) == len(TROUBLED) + len(WELL), patience=90)

            yield SimpleNamespace(url=url, sandbox=sandbox, upkeep=upkeep)


def _people(stores, sandbox):
    with stores.database.writing() as session:
        session.add(Organization(slug=COMPANY))
        session.flush()
        company = organizations.ids(session, [COMPANY], organization_id=None)[COMPANY]
        for name in (*TROUBLED, *WELL):
            email = f"{name}@example.com"
            user = people.connected(session, stores.keyring, name, sandbox.account("google", email))
            organizations.add_members(session, company, [user.id])
    for name, fault in TROUBLED.items():
        _break(sandbox, name, fault)


def _break(sandbox, name, fault):
    email = f"{name}@example.com"
    if fault is None:
        sandbox.revoke(email)
    else:
        sandbox.fault(email=email, **fault)


def _read(stores):
    """The connections whose state is known: connections that were read, or that have ended."""
    with stores.database.reading() as session:
        rows = session.query(OAuthConnection.id, OAuthConnection.alive).all()
    found = stores.last_reads.load([row.id for row in rows])
    return [row.id for row in rows if row.id in found or not row.alive]


def enter(browser, visitor, url, name="ada"):
    browser.delete_all_cookies()
    window.opened(browser, f"{url}/dashboard/sign-in")
    visitor.at("Sign in").write("Name", name).write("Password", PASSWORD).use("Sign in").at("Overview")


def red_rows(browser, url):
    """All rows of a list, over all its pages, by name; each has a red badge."""
    found = {}
    window.opened(browser, url)
    while True:
        rows = browser.execute_script(ROWS)
        assert [name for name, red, _ in rows if not red] == []
        assert not found.keys() & {name for name, _, _ in rows}
        found.update({name: text for name, _, text in rows})
        following = browser.find_elements(By.CSS_SELECTOR, "nav.pager a[rel=next]")
        if not following:
            return found
        window.opened(browser, following[0].get_attribute("href"))


def says(text, name):
    return FAULTS[name][1] in text


def chart(url, users):
    return f"{url}/dashboard/explorer?show=1&users={','.join(users)}&day={DAY}&days=1&zone=UTC"


def test_one_upkeep_round_names_the_forty_who_cannot_be_booked_on_every_page(office, browser, visitor):
    office.upkeep()
    enter(browser, visitor, office.url)
    url = f"{office.url}/dashboard"

    assert visitor.text("#attention-unbookable .badge") == "40"
    assert unread.TITLE in visitor.text("#attention-unbookable")
    assert visitor.text("#attention-unbookable").count("@example.com") == 5

    # The list of users is the whole truth: none is missing, and none is wrong.
    for page in ("users", f"organizations/{COMPANY}"):
        rows = red_rows(browser, f"{url}/{page}?show=unread")
        assert rows.keys() == TROUBLED.keys(), page
        assert [rows[name] for name in FAULTS if not says(rows[name], name)] == [], page
    assert red_rows(browser, f"{url}/users?show=unread&q=gabriel").keys() == {
        each for each in TROUBLED if each.startswith("gabriel")
    }
    window.opened(browser, f"{url}/organizations")
    assert "40 cannot be booked now" in visitor.text("tbody")

    for name in FAULTS:
        window.opened(browser, f"{url}/users/{name}")
        notice = visitor.text(".connection .notice.bad")
        assert says(notice, name), notice
        assert name in notice
    window.opened(browser, chart(office.url, FAULTS))
    lanes = browser.find_elements(By.CSS_SELECTOR, "svg.lane[data-unread]")
    assert {each.get_attribute("data-user") for each in lanes} == FAULTS.keys()
    assert window.complaints(browser) == []

    # A viewer sees the same, without the actions.
    enter(browser, visitor, office.url, "vera")
    assert visitor.text("#attention-unbookable .badge") == "40"
    assert "Invite" not in visitor.text("#attention-unbookable")
    assert red_rows(browser, f"{url}/users?show=unread").keys() == TROUBLED.keys()
    assert browser.find_elements(By.CSS_SELECTOR, "main form[method=post]") == []
    window.opened(browser, f"{url}/users/bruno")
    assert says(visitor.text(".connection .notice.bad"), "bruno")
    assert browser.find_elements(By.CSS_SELECTOR, "main form[method=post]") == []


def test_right_after_a_read_every_page_names_who_failed(office, browser, visitor):
    """No upkeep has run: the explorer has read four people, and one who was well fails at the next read."""
    enter(browser, visitor, office.url)
    url = f"{office.url}/dashboard"
    asked = [*FAULTS, "well.00"]
    window.opened(browser, chart(office.url, asked))
    lanes = browser.find_elements(By.CSS_SELECTOR, "svg.lane[data-unread]")
    assert {each.get_attribute("data-user") for each in lanes} == FAULTS.keys()
    quick = FAULTS.keys() - {"ines"}
    found = red_rows(browser, f"{url}/users?show=unread").keys()
    assert quick <= found <= FAULTS.keys()
    # A slow read continues for the cache; its failure is known when it ends.
    until(lambda: red_rows(browser, f"{url}/users?show=unread").keys() == FAULTS.keys())

    office.sandbox.fault(email="well.00@example.com", status=500)
    window.opened(browser, chart(office.url, asked))
    visitor.use("Refresh")
    window.settled(browser)
    assert "well.00" in red_rows(browser, f"{url}/users?show=unread")
    window.opened(browser, url)
    assert "well.00" in visitor.text("#attention-unbookable")
