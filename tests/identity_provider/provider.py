"""Starts the OpenID Connect server of the tests, and signs in there as a browser does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

import requests
from bs4 import BeautifulSoup

from tests.installation.processes import free_port, listens, running, wait_until

HERE = Path(__file__).parent
SECRET = "planted-openid-secret"


@dataclass(frozen=True)
class IdentityProvider:
    """The running server."""

    issuer: str

    def put(self, name: str, *groups: str) -> None:
        """Create a person, or change the groups."""
        body = {"groups": list(groups)}
        assert requests.put(f"{self.issuer}/people/{name}", json=body, timeout=10).status_code == 204

    def remove(self, name: str) -> None:
        """Remove a person from the directory."""
        assert requests.delete(f"{self.issuer}/people/{name}", timeout=10).status_code == 204

    def visit(self, page: str, name: str, *, declines: bool = False) -> str:
        """Sign in at the page to which Almanac has sent the browser; returns the address that follows."""
        with requests.Session() as browser:
            browser.trust_env = False
            answer = self._follow(browser, browser.get(page, allow_redirects=False, timeout=10))
            while isinstance(answer, requests.Response):
                document = BeautifulSoup(answer.text, "html.parser")
                form = document.form
                assert form is not None, answer.text
                fields = {each["name"]: each.get("value", "") for each in form.select("input[name]")}
                fields |= {"login": name, "password": "any"}
                address = urljoin(answer.url, str(form["action"]))
                if declines:
                    (link,) = [each["href"] for each in document.select("a") if "abort" in each["href"]]
                    sent = browser.get(urljoin(answer.url, link), allow_redirects=False, timeout=10)
                else:
                    sent = browser.post(address, data=fields, allow_redirects=False, timeout=10)
                answer = self._follow(browser, sent)
            return answer

    def _follow(self, browser: requests.Session, answer: requests.Response) -> requests.Response | str:
        """Follow redirects inside of the server: its next page, or the address outside."""
        while answer.is_redirect:
            address = urljoin(answer.url, answer.headers["Location"])
            if not address.startswith(self.issuer):
                return address
            answer = browser.get(address, allow_redirects=False, timeout=10)
        assert answer.ok, answer.text
        return answer


@contextmanager
def running_identity_provider(redirect: str) -> Iterator[IdentityProvider]:
    """The server in a process of its own."""
    port = free_port()
    command = ("node", str(HERE / "server.js"), str(port), redirect)
    with running(command, {"PATH": "/usr/local/bin:/usr/bin:/bin"}) as process:
        wait_until(lambda: listens(port), [process])
        yield IdentityProvider(f"http://127.0.0.1:{port}")
