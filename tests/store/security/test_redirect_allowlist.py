"""The redirect allow-list: exact entries, entries with ``/*``, and URLs that try to bypass them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.security.redirect_allowlist import allowed, is_entry

WHOLE = "https://app.example.com/connected"
LIST = (WHOLE, "https://app.example.com/in/*", "http://127.0.0.1:9000/*", "https://q.example.com/cb?tenant=a")


@pytest.mark.parametrize(
    "url",
    [
        WHOLE,
        "HTTPS://APP.example.com/connected",
        "https://app.example.com:443/connected",
        "https://app.example.com/in/",
        "https://app.example.com/in/a/b.html?x=1&y=%2e%2e",
        "https://app.example.com/in/a..b/.well-known",
        "http://127.0.0.1:9000/",
        "http://127.0.0.1:9000/callback",
        "https://q.example.com/cb?tenant=a",
    ],
)
def test_what_is_on_the_list_or_below_it_is_allowed(url):
    assert allowed(url, LIST)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "connected",
        "/connected",
        "//app.example.com/connected",
        "https:app.example.com/connected",
        "https:///connected",
        "http://app.example.com/connected",
        "ftp://app.example.com/connected",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://app.example.com",
        "https://app.example.com/connected/",
        "https://app.example.com/Connected",
        "https://app.example.com/connected?x=1",
        "https://app.example.com/connected#x",
        "https://app.example.com/connected ",
        "https://app.example.com/connected\n",
        "https://app.example.com:8443/connected",
        "https://app.example.com:0x1bb/connected",
        "https://app.example.com.evil.example/connected",
        "https://evil.example/https://app.example.com/connected",
        "https://xapp.example.com/in/a",
        "https://app.example.com./in/a",
        # userinfo: the host is what follows it
        "https://app.example.com@evil.example/in/a",
        "https://user:secret@app.example.com/in/a",
        "https://app.example.com:443@evil.example/in/a",
        # backslashes, which browsers take for slashes
        "https://app.example.com\\@evil.example/in/a",
        "https://app.example.com/in\\..\\connected/x",
        "https:\\\\app.example.com\\in\\a",
        # climbing out
        "https://app.example.com/in/../admin",
        "https://app.example.com/in/a/..",
        "https://app.example.com/in/./a",
        "https://app.example.com/in/%2e%2e/admin",
        "https://app.example.com/in/%2E./admin",
        "https://app.example.com/in/..;x/admin",
        "https://app.example.com/in/..%2fadmin",
        "https://app.example.com/in/..%5Cadmin",
        "https://app.example.com/in",
        "https://app.example.com/inside",
        "http://127.0.0.1:9001/callback",
        "http://127.0.0.1/callback",
        "http://localhost:9000/callback",
        "http://127.0.0.1.evil.example:9000/callback",
        "https://q.example.com/cb",
        "https://q.example.com/cb?tenant=b",
        "https://[::1/in/a",
        "https://äpp.example.com/in/a",
    ],
)
def test_similar_urls_are_not_allowed(url):
    assert not allowed(url, LIST)


def test_an_empty_list_allows_nothing():
    assert not allowed(WHOLE, ())


@pytest.mark.parametrize(
    "url", ["http://localhost:3000/cb", "http://127.0.0.1/cb", "http://127.1.2.3/cb", "http://[::1]:3000/cb"]
)
def test_without_encryption_it_is_this_machine_alone(url):
    assert is_entry(url)
    assert allowed(url, [url])


@pytest.mark.parametrize(
    "text", [WHOLE, "https://a.example/*", "https://a.example", "https://a.example:8443/x/*"]
)
def test_what_can_stand_on_the_list(text):
    assert is_entry(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "/*",
        "https://*",
        "https://*/cb",
        "https://*.example.com/cb",
        "https://a.example/*/cb",
        "https://a.example/x*",
        "https://a.example/?x=/*",
        "http://a.example/cb",
        "https://a.example/../*",
    ],
)
def test_what_cannot(text):
    assert not is_entry(text)


hosts = st.sampled_from(["app.example.com", "evil.example", "127.0.0.1"])
pieces = st.sampled_from(["in", "..", ".", "%2e%2e", "connected", "", "a", "..;", "%2f", "\\"])


@given(st.sampled_from(["http", "https"]), hosts, st.lists(pieces, max_size=5))
def test_allowed_url_resolves_to_a_listed_address(scheme, host, path):
    url = f"{scheme}://{host}/{'/'.join(path)}"
    if not allowed(url, LIST[:2]):
        return
    assert (scheme, host) == ("https", "app.example.com")
    resolved: list[str] = []
    for each in "/".join(path).lower().replace("%2e", ".").replace("%2f", "/").replace("\\", "/").split("/"):
        match each.partition(";")[0]:
            case "..":
                del resolved[-1:]
            case ".":
                pass
            case _:
                resolved.append(each)
    assert resolved == ["connected"] or (resolved[0] == "in" and len(resolved) > 1)
