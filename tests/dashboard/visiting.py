"""A browser without scripts at the dashboard: it keeps its cookie and sends a form with the page's token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from werkzeug.datastructures import Headers
from werkzeug.test import TestResponse

HOME = "/dashboard"


@dataclass(frozen=True)
class Person:
    """An administrator, with the password to sign in with."""

    name: str
    password: str


class Page:
    """An answer of the dashboard; ``.html`` is what a browser makes of it."""

    def __init__(self, answer: TestResponse) -> None:
        self.answer = answer
        self.status: int = answer.status_code
        self.text: str = answer.get_data(as_text=True)
        self.headers: Headers = answer.headers
        # Where it sends the browser, as a path with its query.
        self.location: str | None = answer.headers.get("Location")

    @cached_property
    def html(self) -> BeautifulSoup:
        return BeautifulSoup(self.text, "html.parser")

    @property
    def heading(self) -> str:
        """The one heading of the first level."""
        (heading,) = self.html.find_all("h1")
        return words(heading)

    @property
    def notices(self) -> list[str]:
        """What the page tells at its top: what was done, what was refused."""
        return [words(each) for each in self.html.select(".notice")]

    @property
    def token(self) -> str | None:
        """The token that its forms send."""
        found = self.html.find("input", {"name": "csrf_token"})
        return None if found is None else str(found["value"])

    def error_of(self, name: str) -> str | None:
        """The complaint beside a field of a form, which the field names as its description."""
        if (error := self.html.find(id=f"e-{name}")) is None:
            return None
        assert f"e-{name}" in self.html.find(id=f"f-{name}")["aria-describedby"].split()
        return words(error)


def words(element: Any) -> str:
    """The text of an element, with single spaces."""
    return " ".join(element.get_text(" ").split())


@dataclass
class Browser:
    """``browser.get("/keys")``, ``browser.post("/keys", {"name": "ops"})``; paths are below ``/dashboard``.

    Redirects are not followed but by ``do``. ``page`` is the last answer.
    """

    client: FlaskClient
    address: str = "127.0.0.1"
    page: Page | None = field(default=None, repr=False)

    def get(self, path: str = "", /, headers: Mapping[str, str] | None = None, **query: Any) -> Page:
        return self.open("GET", path, headers=headers, query_string=query or None)

    def post(
        self,
        path: str,
        form: Mapping[str, Any] | None = None,
        /,
        headers: Mapping[str, str] | None = None,
    ) -> Page:
        """Send a form with the token of the page that the browser shows, or of one that it opens first."""
        # Whoever is not signed in finds a form at the sign-in.
        for each in ("/account", "/sign-in"):
            if self.page is None or self.page.token is None:
                self.get(each)
        return self.open("POST", path, headers=headers, data={"csrf_token": self.page.token, **(form or {})})

    def do(self, path: str, form: Mapping[str, Any] | None = None, /) -> Page:
        """Send a form and go where it leads: the page that says what was done."""
        page = self.post(path, form)
        while page.status in (302, 303):
            page = self.get(page.location)
        return page

    def open(self, method: str, path: str, /, **request: Any) -> Page:
        """Any request; a path may be whole, as a redirect's is."""
        where = path if path.startswith(HOME) else f"{HOME}{path}"
        if request.get("query_string") is None:
            request.pop("query_string", None)
        answer = self.client.open(
            where, method=method, environ_overrides={"REMOTE_ADDR": self.address}, **request
        )
        self.page = Page(answer)
        return self.page

    def sign_in(self, person: Person) -> Page:
        """Sign in through the form."""
        self.get("/sign-in")
        return self.post("/sign-in", {"name": person.name, "password": person.password})

    @property
    def cookie(self) -> str | None:
        """What the browser keeps of us."""
        kept = self.client.get_cookie("almanac", path=HOME)
        return None if kept is None else kept.value
