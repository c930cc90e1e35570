"""What several pages use: relative times, typed confirmations, fields with suggestions, the palette."""

from datetime import timedelta

import pytest
from flask import get_template_attribute

from app.dashboard import forms, template_filters
from store.sql.models import now
from tests.dashboard.visiting import words


@pytest.mark.parametrize(
    ("distance", "said"),
    [
        (timedelta(), "just now"),
        (-timedelta(seconds=59), "just now"),
        (-timedelta(seconds=61), "1 minute ago"),
        (-timedelta(minutes=59, seconds=59), "59 minutes ago"),
        (-timedelta(hours=2, seconds=1), "2 hours ago"),
        (-timedelta(days=1, seconds=1), "1 day ago"),
        (-timedelta(days=45), "1 month ago"),
        (-timedelta(days=800), "2 years ago"),
        (timedelta(seconds=30), "in less than a minute"),
        (timedelta(days=3, seconds=5), "in 3 days"),
        (timedelta(days=365, seconds=-2), "in 1 year"),
        (timedelta(days=90, seconds=-2), "in 3 months"),
        (timedelta(days=30, seconds=-2), "in 30 days"),
    ],
)
def test_times_are_relative(distance, said):
    moment = now() + distance
    assert f">{said}</time>" in template_filters.relative(moment)
    assert f'datetime="{moment:%Y-%m-%dT%H:%M:%SZ}"' in template_filters.relative(moment)
    assert f'title="{moment.day} {moment:%b %Y, %H:%M:%S} UTC"' in template_filters.relative(moment)


def test_a_moment_that_never_was():
    assert template_filters.relative(None) == "never"
    assert template_filters.relative(None, "not yet") == "not yet"


@pytest.mark.parametrize(
    ("sent", "right"), [("acme", True), (" acme ", True), ("", False), ("ACME", False), ("acm", False)]
)
def test_an_action_is_confirmed_by_typing_its_subject(app, sent, right):
    with app.test_request_context("/dashboard", method="POST", data={"confirm": sent}):
        assert forms.typed("acme") is right
    with app.test_request_context("/dashboard", method="POST"):
        assert forms.typed("acme") is False


def test_a_typed_confirmation_works_without_scripts(app):
    with app.test_request_context("/dashboard"):
        confirmed = get_template_attribute("dashboard/parts.html", "confirmed")
        made = confirmed("/dashboard/sign-in", "Delete", "Really?", typed="<acme>")
    assert 'data-confirm-typed="&lt;acme&gt;"' in made
    assert '<noscript><label>Type &lt;acme&gt; to confirm <input name="confirm"' in made


def test_suggestions_begin_with_what_is_typed(signed_in, new_user, unique):
    mark = unique("pick")
    names = [new_user(name=name) for name in (f"a-{mark}", f"{mark}-z", f"{mark}-b")]
    new_user()
    found = signed_in.get("/search/users", q=mark.upper()).html.select("[role=option]")
    assert [each["data-value"] for each in found] == [names[2], names[1], names[0]]
    assert found[0]["data-href"] == f"/dashboard/users/{names[2]}"


def test_organizations_are_suggested_with_their_names(signed_in, unique):
    slug = unique("zebra")
    signed_in.do("/organizations", {"slug": slug, "name": "Zebra <b> Works"})
    (found,) = signed_in.get("/search/organizations", q=slug).html.select("[role=option]")
    assert words(found) == f"{slug} Zebra <b> Works"


def test_there_are_no_other_suggestions(signed_in):
    assert signed_in.get("/search/keys", q="a").status == 404


def test_the_palette_finds_pages_users_and_organizations(signed_in, new_user, unique):
    mark = unique("palette")
    user, slug = new_user(name=f"{mark}-user"), f"{mark}-org"
    signed_in.do("/organizations", {"slug": slug})
    found = signed_in.get("/search/palette", q=mark).html.select("[role=option]")
    assert [(each["data-value"], words(each.select_one(".quiet"))) for each in found[:2]] == [
        (user, "User"),
        (slug, "Organization"),
    ]
    pages = signed_in.get("/search/palette", q="api create").html.select("[role=option]")
    assert [each["data-href"] for each in pages] == ["/dashboard/keys/new"]
    # Nothing typed: the pages.
    pages = signed_in.get("/search/palette").html.select("[role=option]")
    assert {each["data-href"] for each in pages} >= {"/dashboard/users", "/dashboard/audit"}


def test_the_palette_has_every_page_and_the_actions_of_what_it_finds(signed_in, new_user, unique):
    pages = {each["data-href"] for each in signed_in.get("/search/palette").html.select("[role=option]")}
    menu = {each["href"] for each in signed_in.get("/account").html.select("nav[aria-label=Pages] a")}
    assert menu <= pages
    assert {
        "/dashboard/invitations/new",
        "/dashboard/users#f-id",
        "/dashboard/account/second-factor",
    } <= pages

    user = new_user(name=unique("acted"))
    found = [words(each) for each in signed_in.get("/search/palette", q=user).html.select("[role=option]")]
    assert any(f"Find free times of {user}" in each for each in found)
    assert any(f"Invite {user}" in each for each in found)


def test_every_page_of_the_palette_is_there(signed_in):
    for each in signed_in.get("/search/palette").html.select("[role=option]"):
        assert signed_in.get(each["data-href"]).status == 200, each
