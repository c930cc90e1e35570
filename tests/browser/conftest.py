"""A headless Chromium, and the service as people reach it: over a socket, with a worker behind it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
import requests
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from app import processes
from tests import services
from tests.conftest import START_SECONDS, STOP_SECONDS

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
    # Everything that the walk needs is on this machine; whatever else the browser looks up fails at once.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--window-size=900,1000",
)


@pytest.fixture(scope="session")
def web(environment: dict[str, str], worker: None) -> Iterator[str]:
    """The URL of a real web server."""
    services.chromium().require()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    ours = {"ALMANAC_PUBLIC_URL": url, "ALMANAC_REDIRECT_URLS": f"{url}/healthz", "PATH": os.environ["PATH"]}
    with subprocess.Popen(processes.web("127.0.0.1", port, 1), env=environment | ours) as server:
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                requests.get(f"{url}/healthz", timeout=1)
                break
            except requests.ConnectionError:
                assert server.poll() is None
                assert time.monotonic() < give_up, "the server does not listen"
                time.sleep(0.05)
        yield url
        server.terminate()
        server.wait(timeout=STOP_SECONDS)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """One browser for the session, with a profile of its own."""
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
    """The browser, on an empty page and without anything kept from the test before."""
    chromium.delete_all_cookies()
    chromium.get("about:blank")
    chromium.get_log("browser")
    return chromium
