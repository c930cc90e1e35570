"""URLs that clients have entered are called at public addresses only, in any notation."""

from __future__ import annotations

import socket

import pytest

from providers.http import ssrf_guard
from providers.http.ssrf_guard import ForbiddenUrl, is_public, parse, resolve


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.0.1"),
        *("192.0.0.9", "192.0.0.10", "192.88.99.1"),
        *("::1", "::", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1"),
        *("64:ff9b:1::a00:1", "2002:7f00:1::", "2002:808:808::", "2001:0:7f00:1::", "2001:db8::1"),
        # Documentation and assignments that Python 3.11 takes for public; 5f00::/16 is for segment routing.
        *("3fff::1", "3fff:fff:ffff::1", "2001:1ff::1", "2001:20::1", "3ffe::1", "5f00::1", "100:0:0:1::1"),
        *("fe80::1", "fe80::1%1", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1", "100::1"),
    ],
)
def test_what_is_not_of_the_internet(address):
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "192.0.1.1", "192.88.98.1", "2606:2800:220:1::1", "2a00:1450:4001::1"]
)
def test_what_is(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://localhost/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]:8443/hook",
        "https://[64:ff9b::127.0.0.1]/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://0/",
        "https://169.254.169.254/latest/meta-data",
    ],
)
def test_however_it_is_written_it_is_refused(url):
    with pytest.raises(ForbiddenUrl, match="private or loopback"):
        resolve(parse(url, allow_private=False), allow_private=False)


def test_a_name_is_refused_when_one_of_its_addresses_is_ours(monkeypatch):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 443)) for ip in ("93.184.216.34", "10.0.0.1")]
    monkeypatch.setattr(ssrf_guard.socket, "getaddrinfo", lambda *_, **__: found)
    target = parse("https://example.com/", allow_private=False)
    with pytest.raises(ForbiddenUrl, match="private or loopback"):
        resolve(target, allow_private=False)
    assert resolve(target, allow_private=True) == ["93.184.216.34", "10.0.0.1"]


@pytest.mark.parametrize("host", ["nothing.invalid", f"{'a' * 64}.invalid", "a..b"])
def test_an_unknown_name_has_no_addresses(host):
    assert resolve(parse(f"https://{host}/", allow_private=False), allow_private=False) == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://example.com/", "must be an https URL"),
        ("ftp://example.com/", "must be an https URL"),
        ("file:///etc/passwd", "must be an https URL"),
        ("//example.com/", "must be an https URL"),
        ("example.com", "must be an https URL"),
        ("https://", "must be an https URL"),
        ("https:///path", "must be an https URL"),
        ("https://example.com:0/", "must be an https URL"),
        ("https://example.com:65536/", "must be an https URL"),
        ("https://example.com:x/", "must be an https URL"),
        ("https://[::1/", "must be an https URL"),
        ("https://[fe80::1%25eth0]/", "must be an https URL"),
        ("https://example.com\\@127.0.0.1/", "must be an https URL"),
        ("https://example.com/\u00e4", "must be an https URL"),
        ("https://ex\u00e4mple.com/", "must be an https URL"),
        ("https://example.com/a b", "must be an https URL"),
        ("https://example.com/\r\nHost: x", "must be an https URL"),
        ("https://ada:secret@example.com/", "must not hold a user or a password"),
        ("https://ada@example.com/", "must not hold a user or a password"),
        ("https://@example.com/", "must not hold a user or a password"),
        ("https://example.com/#top", "must not have a fragment"),
    ],
)
def test_what_is_no_url_for_webhooks(url, message):
    with pytest.raises(ForbiddenUrl) as refused:
        parse(url, allow_private=False)
    assert str(refused.value) == message
    assert "secret" not in str(refused.value)


def test_the_parts_of_a_url():
    target = parse("https://Example.com:8443/hook/a%20b?x=1&y=%2F", allow_private=False)
    assert (target.tls, target.host, target.port) == (True, "example.com", 8443)
    assert (target.authority, target.path) == ("Example.com:8443", "/hook/a%20b?x=1&y=%2F")
    plain = parse("http://[::1]", allow_private=True)
    assert (plain.tls, plain.host, plain.port, plain.path) == (False, "::1", 80, "/")
