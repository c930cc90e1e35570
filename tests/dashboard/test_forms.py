"""Cross-site request forgery: every POST needs the CSRF token of its session."""

from __future__ import annotations

import json

import pytest

from tests.dashboard.routes import pages


@pytest.fixture
def posts(app):
    """The path of every route that takes a form."""
    return [path for path in pages(app, "POST") if "/welcome/" not in path]


def refused(page) -> bool:
    return (page.status, page.heading) == (400, "This form is no longer valid")


def test_no_form_is_accepted_without_the_token_of_its_session(signed_in, browser_of, administrator, posts):
    theirs = browser_of(administrator).get("/account").token
    mine = signed_in.get("/account").token
    assert theirs != mine
    assert len(posts) >= 6

    for path in posts:
        for form in ({}, {"csrf_token": ""}, {"csrf_token": "x" * 91}, {"csrf_token": theirs}):
            assert refused(signed_in.open("POST", path, data=form)), (path, form)
    # None of them has signed the browser out.
    assert signed_in.get("/account").status == 200


def test_a_browser_without_sign_in_needs_a_token_too(visitor, administrator):
    form = {"name": administrator.name, "password": administrator.password}

    assert refused(visitor.open("POST", "/sign-in", data=form))
    visitor.get("/sign-in")
    assert refused(visitor.open("POST", "/sign-in", data=form))
    assert visitor.post("/sign-in", form).status == 303


def test_a_token_from_before_the_sign_in_is_invalid(visitor, administrator):
    token = visitor.get("/sign-in").token
    visitor.sign_in(administrator)

    assert refused(visitor.open("POST", "/sign-out", data={"csrf_token": token}))


def test_scripts_send_the_token_of_the_page_as_a_header(signed_in):
    headers = json.loads(signed_in.get("/account").html.find("body")["hx-headers"])

    sent = signed_in.open("POST", "/sign-out", headers=headers)

    assert sent.location == "/dashboard/sign-in"


def test_a_form_is_accepted_behind_a_proxy_with_another_host_name(signed_in):
    token = signed_in.get("/account").token
    client = signed_in.client.application.test_client(use_cookies=False)
    behind = {
        "wsgi.url_scheme": "https",
        "HTTP_HOST": "10.0.0.7",
        "HTTP_COOKIE": f"almanac={signed_in.cookie}",
    }

    for referer in ({"Referer": "https://almanac.example.com/dashboard/account"}, {}):
        accepted, refused_one = (
            client.post(
                "/dashboard/account/sessions/nobodys/end",
                data={"csrf_token": each},
                headers=referer,
                environ_overrides=behind,
            )
            for each in (token, "wrong")
        )
        assert (accepted.status_code, refused_one.status_code) == (303, 400)


def test_without_sign_in_only_open_pages_are_reachable(app, visitor, posts):
    visitor.get("/sign-in")

    for path in pages(app, "GET"):
        if not path.startswith(("/dashboard/sign-in", "/dashboard/welcome/")):
            assert visitor.get(path).location.startswith("/dashboard/sign-in"), path
    for path in posts:
        if path != "/dashboard/sign-in":
            visitor.get("/sign-in")
            assert visitor.post(path).location == "/dashboard/sign-in", path
