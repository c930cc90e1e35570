"""A browser without scripts for the dashboard: it keeps cookies and sends forms with the page's token."""

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
    """An answer of the dashboard; ``.html`` is the parsed document."""

    def __init__(self, answer: TestResponse) -> None:
        self.answer = answer
        self.status: int = answer.status_code
        self.text: str = answer.get_data(as_text=True)
        self.headers: Headers = answer.headers
        # The target of a redirect, as a path with its query.
        self.location: str | None = answer.headers.get("Location")

    @cached_property
    def html(self) -> BeautifulSoup:
        return BeautifulSoup(self.text, "html.parser")

    @property
    def heading(self) -> str:
        """The only heading of the first level."""
        (heading,) = self.html.find_all("h1")
        return words(heading)

    @property
    def notices(self) -> list[str]:
        """The messages at the top of the page."""
        return [words(each) for each in self.html.select(".notice")]

    @property
    def token(self) -> str | None:
        """The token that its forms send."""
        found = self.html.find("input", {"name": "csrf_token"})
        return None if found is None else str(found["value"])

    def error_of(self, name: str) -> str | None:
        """The error beside a field, which the field references by ``aria-describedby``."""
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

    Only ``do`` follows redirects. ``page`` is the last answer.
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
        # Without sign-in, the sign-in page has a form.
        for each in ("/account", "/sign-in"):
            if self.page is None or self.page.token is None:
                self.get(each)
        return self.open("POST", path, headers=headers, data={"csrf_token": self.page.token, **(form or {})})

    def do(self, path: str, form: Mapping[str, Any] | None = None, /) -> Page:
        """Send a form and follow its redirects to the page with the result."""
        page = self.post(path, form)
        while page.status in (302, 303):
            page = self.get(page.location)
        return page

    def open(self, method: str, path: str, /, **request: Any) -> Page:
        """Send any request; the path may already start with ``/dashboard``, as in redirects."""
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
        """The value of the session cookie."""
        kept = self.client.get_cookie("almanac", path=HOME)
        return None if kept is None else kept.value
