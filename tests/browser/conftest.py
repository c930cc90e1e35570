"""Fixtures: a headless Chromium, and a real web server with a worker."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from bs4 import BeautifulSoup
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from app.cli import administrator_setup
from providers.sandbox.client import Sandbox
from store.config.settings import Settings, new_secrets
from store.sql.database import Database
from store.stores import Stores
from tests import services
from tests.browser import window
from tests.browser.content import filled
from tests.browser.keyboard import Keyboard
from tests.browser.visitor import Pointer, Visitor
from tests.conftest import settings_of
from tests.dashboard.visiting import Person
from tests.installation.processes import free_port, web_server

SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    # Everything that the tests need is on this machine; lookups of other hosts fail at once.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--window-size=900,1000",
)

ADMINISTRATOR = Person("grace", "seven quiet calendars")


@contextmanager
def dashboard(environment: Mapping[str, str]) -> Iterator[str]:
    """Run a web server; yields its URL, which is also its ALMANAC_PUBLIC_URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    public = {"ALMANAC_PUBLIC_URL": url, "ALMANAC_REDIRECT_URLS": f"{url}/healthz"}
    with web_server({**environment, **public}, port=port):
        yield url


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark these tests, which take minutes and have a separate command."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def web(environment: dict[str, str], worker: None) -> Iterator[str]:
    """The URL of a real web server."""
    services.chromium().require()
    with dashboard(environment) as url:
        yield url


@pytest.fixture
def new_web(environment: dict[str, str], tmp_path: Path) -> Iterator[tuple[str, Stores]]:
    """A new web server without administrators, and its stores."""
    with installed(environment, tmp_path) as found:
        yield found


@contextmanager
def installed(environment: Mapping[str, str], folder: Path) -> Iterator[tuple[str, Stores]]:
    """Run a web server with a new database in a folder; yields its URL and its stores."""
    services.chromium().require()
    secret, encryption = new_secrets()
    own = {
        **environment,
        "ALMANAC_DATABASE_URL": f"sqlite:///{folder / 'new.db'}",
        "ALMANAC_SECRET_KEY": secret,
        "ALMANAC_ENCRYPTION_KEYS": encryption,
    }
    with Stores(settings_of(own)) as stores:
        stores.database.upgrade()
        with dashboard(own) as url:
            yield url, stores


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """One browser for the session, with a new profile."""
    found = services.chromium()
    found.require()
    options = ChromeOptions()
    options.binary_location = str(found.version)
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    # Named, so that Selenium does not look for a driver to download.
    browser = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    browser.set_page_load_timeout(60)
    yield browser
    browser.quit()


@pytest.fixture
def browser(chromium: Chrome) -> Chrome:
    """The browser, on an empty page and without cookies of the test before."""
    window.as_it_was(chromium)
    chromium.execute_cdp_cmd("Network.clearBrowserCookies", {})
    chromium.get("about:blank")
    chromium.get_log("browser")
    return chromium


@pytest.fixture
def keys(browser: Chrome) -> Keyboard:
    """The keyboard of a browser with a wide window, not signed in."""
    window.resize(browser, 1440)
    return Keyboard(browser)


@pytest.fixture(params=[Pointer, Keyboard], ids=["pointer", "keyboard"])
def visitor(request: pytest.FixtureRequest, browser: Chrome) -> Visitor:
    """A user of a desktop window, once with a pointer and once with the keyboard alone."""
    window.resize(browser, window.SIZES[0])
    made: Visitor = request.param(browser)
    return made


@pytest.fixture(scope="session")
def administrator(settings: Settings, database: Database) -> Person:
    """An administrator."""
    with Stores(settings) as stores:
        administrator_setup.create(stores, ADMINISTRATOR.name, ADMINISTRATOR.password)
    return ADMINISTRATOR


@pytest.fixture(scope="session")
def cookie(web: str, administrator: Person) -> str:
    """The session cookie of the signed-in administrator."""
    with requests.Session() as session:
        page = session.get(f"{web}/dashboard/sign-in", timeout=10).text
        token = BeautifulSoup(page, "html.parser").find("input", {"name": "csrf_token"})["value"]
        form = {"csrf_token": token, "name": administrator.name, "password": administrator.password}
        answer = session.post(f"{web}/dashboard/sign-in", form, timeout=10, allow_redirects=False)
        assert answer.status_code == 303, answer.text
        return str(session.cookies["almanac"])


@pytest.fixture
def sign_in(browser: Chrome, web: str, cookie: str) -> Callable[[], None]:
    """Sign the browser in by setting the cookie, which is faster than the form: ``sign_in()``."""

    def give() -> None:
        kept = {"name": "almanac", "value": cookie, "url": web, "path": "/dashboard", "httpOnly": True}
        browser.execute_cdp_cmd("Network.setCookie", kept)

    return give


@pytest.fixture(scope="module")
def content(
    settings: Settings, database: Database, sandbox_process: str, administrator: Person
) -> Iterator[Mapping[str, str]]:
    """Fill the database for the tests of a module; yields a value for each argument of paths."""
    Sandbox(sandbox_process).reset()
    with (
        Stores(settings) as stores,
        filled(stores, sandbox_process, administrator=administrator.name) as names,
    ):
        yield names
