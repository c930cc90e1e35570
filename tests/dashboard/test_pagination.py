"""Lists: the query arguments that links to their other pages keep."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

# Options of ``url_for``, its values, and names that only an attacker would send.
ODD = ("endpoint", "_method", "_scheme", "_external", "_anchor", "self", "values", "webhook_id", "slug")


@pytest.fixture
def lists(signed_in, stores, new_organization):
    """Lists, each with a query for which it links to its other pages."""
    return [
        "/keys",
        "/users?after=zzz",
        "/organizations?after=zzz",
        "/webhooks?after=zzz",
        "/audit?before=1",
        f"/organizations/{new_organization()}?after=zzz",
    ]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("value", ["1", "TRACE", ""])
def test_unknown_query_arguments_are_dropped(signed_in, lists, name, value):
    for path in lists:
        page = signed_in.get(f"{path}{'&' if '?' in path else '?'}{name}={value}")

        assert page.status == 200, path
        onward = [urlsplit(each["href"]) for each in page.html.select("main a[href*='?']")]
        assert name not in {key for each in onward for key in parse_qs(each.query, keep_blank_values=True)}
        assert not any(each.netloc or each.fragment for each in onward)


def test_known_query_arguments_are_kept(signed_in, new_organization):
    slug = new_organization()

    page = signed_in.get("/keys", organization=slug, show="ended", before="7", endpoint="users")

    links = {each.get_text(): each["href"] for each in page.html.select("main a")}
    assert links["Show all"] == "/dashboard/keys?show=ended"
    assert links["First page"] == f"/dashboard/keys?organization={slug}&show=ended"
    found = signed_in.get("/users", q="nobody at all", after="zzz")
    assert found.html.find("a", string="First page")["href"] == "/dashboard/users?q=nobody+at+all"
