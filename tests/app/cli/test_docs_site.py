"""The documentation at `/docs`, as it was built, and the links to it in error answers."""

from __future__ import annotations

import base64
import hashlib
import re
from urllib.parse import urljoin

import pytest
from bs4 import BeautifulSoup

from app.docs_site import site
from app.http.error_handlers import EXPLAINED
from providers.errors import Reason
from tests.docs.fences import ROOT
from tests.docs.site import build

ERRORS = "/docs/reference/errors/"


@pytest.fixture(scope="session", autouse=True)
def built():
    build()


@pytest.fixture
def client(app):
    return app.test_client()


def page(client, path):
    with client.get(path) as answer:
        assert answer.status_code == 200, path
        return BeautifulSoup(answer.data, "html.parser")


def pages():
    """The paths of all pages, below `/docs/`."""
    for file in sorted(site.FOLDER.rglob("index.html")):
        yield str(file.parent.relative_to(site.FOLDER)).removeprefix(".") + "/"


@pytest.mark.slow
def test_only_documents_for_users_and_operators_have_pages():
    parts = ("start", "guides", "reference", "operate")
    documents = {
        f"{file.relative_to(ROOT / 'docs').with_suffix('')}/"
        for part in parts
        for file in (ROOT / "docs" / part).rglob("*.md")
    }

    assert {path for path in pages() if path != "/"} == documents


@pytest.mark.slow
def test_what_pages_load_and_link_to_is_served(client):
    seen = set()
    for path in pages():
        here = f"/docs/{path.removeprefix('/')}"
        for each in page(client, here).select("a[href], link[href], script[src], img[src], source[srcset]"):
            target = next(each[name] for name in ("href", "src", "srcset") if each.has_attr(name))
            if target.startswith(("http:", "https:", "#")) and each.name == "a":
                continue
            address = urljoin(here, target.partition("#")[0])
            assert address.startswith("/docs/"), f"{here}: {target}"
            if address not in seen:
                seen.add(address)
                with client.get(address) as answer:
                    assert answer.status_code == 200, f"{here}: {target}"

    assert len(seen) > 30


def test_the_first_page_needs_no_key_and_has_one_address(client):
    assert client.get("/docs").location == "/docs/"
    assert client.get("/docs/reference/errors").location == ERRORS
    assert client.get(f"{ERRORS}index.html").status_code == 404
    assert "Almanac" in page(client, "/docs/").title.text


@pytest.mark.parametrize("name", site.MOVED)
def test_an_address_of_before_leads_to_the_page(client, name):
    answer = client.get(f"/docs/{name}")

    assert answer.status_code == 301
    with client.get(answer.location) as there:
        assert there.status_code == 200


@pytest.mark.parametrize(
    "path",
    ["nothing", "nothing.png", "engineering/decisions/", "../pyproject.toml", "%2e%2e/a.png", "a/b.py"],
)
def test_nothing_else_is_served_and_what_is_missing_is_not_cached(client, path):
    answer = client.get(f"/docs/{path}")

    assert answer.status_code == 404
    assert "Cache-Control" not in answer.headers


def test_csp_allows_only_own_and_built_inline_scripts(client):
    with client.get(ERRORS) as answer:
        policy = dict(
            each.strip().split(" ", 1) for each in answer.headers["Content-Security-Policy"].split(";")
        )
        inline = re.findall(rb"<script>(.*?)</script>", answer.data, re.DOTALL)
        assert answer.headers["Cache-Control"] == "public, max-age=300"

    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(each).digest()).decode()}'" for each in inline}
    assert hashes
    assert set(policy["script-src"].split()) == {"'self'", *hashes}
    assert policy["default-src"] == "'none'"
    assert policy["style-src"] == "'self' 'unsafe-inline'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"


def test_missing_docs_site_is_503_with_the_build_command(client, monkeypatch, tmp_path):
    monkeypatch.setattr(site, "FOLDER", tmp_path)

    answer = client.get("/docs/")

    assert answer.status_code == 503
    assert "make docs" in answer.text


@pytest.mark.parametrize(
    ("method", "path", "section"),
    [
        ("GET", "/v1/users", "401"),
        ("GET", "/v1/nothing", "404"),
        ("POST", "/v1/push/google", "404"),
        ("PATCH", "/healthz", "405"),
    ],
)
def test_an_error_links_to_the_section_that_helps(client, method, path, section):
    answer = client.open(path, method=method)

    assert answer.status_code == int(section)
    assert answer.headers["Link"] == f'<{ERRORS}#{section}>; rel="help"'
    assert page(client, ERRORS).find(id=section)


def test_below_a_prefix_the_link_has_it_too(client):
    answer = client.get("/v1/users", base_url="http://localhost/almanac")

    assert answer.headers["Link"].startswith(f"</almanac{ERRORS}#")


def test_success_links_to_nothing(client):
    assert "Link" not in client.get("/v1/openapi.json").headers


def test_every_section_that_an_error_may_name_is_there(client):
    found = {each["id"] for each in page(client, ERRORS).select("[id]")}

    named = {str(status) for status in EXPLAINED if isinstance(status, int)}
    assert named | {reason.lower() for reason in Reason} | {"by-status"} <= found


def test_a_failed_calendar_leads_to_its_reason(api, sandbox, new_user):
    user = new_user(sandbox.account("google", "forbidden@example.com"))
    sandbox.fault(provider="google", operation="google.freebusy.query", status=403, reason="forbidden")

    answer = api.get(f"/users/{user}/calendar/busy", start="2027-01-04", end="2027-01-05")

    assert re.fullmatch(rf'<{ERRORS}#\w+>; rel="help"', answer.headers["Link"])
    assert "403" not in answer.headers["Link"], "a reason tells more than its status"


@pytest.mark.slow
def test_assistants_find_every_page_as_markdown(client):
    with client.get("/docs/llms.txt") as answer:
        assert answer.mimetype == "text/plain"
        listed = dict(re.findall(r"^- \[.+\]\((\S+)\): (.*)$", answer.text, re.MULTILINE))

    assert {f"{path.removesuffix('.md')}/" for path in listed} == {path for path in pages() if path != "/"}
    assert not [path for path, sentence in listed.items() if not re.match(r"[\w`*]", sentence)]
    for path in listed:
        with client.get(f"/docs/{path}") as answer:
            assert answer.status_code == 200
            assert answer.text.startswith("# ")


@pytest.mark.slow
def test_pages_say_what_holds_without_the_names_of_tests(client):
    found = page(client, "/docs/operate/security/")

    headings = {cell.get_text() for cell in found.select("th")}
    assert "what holds" in headings
    assert "tests" not in headings
    assert not [row for row in found.select("td") if "::test_" in row.get_text()]
