"""Names and redirects that lead into a private network, over TLS. The test resolves them."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from providers.errors import FieldRefused
from providers.http import ssrf_guard, transport
from tests.certificates import issue
from tests.http_server import KeepAliveHandler, start, stop
from tests.providers.caldav.scripted import regular_answers
from tests.providers.caldav.test_discovery import found_at

PUBLIC, PRIVATE = "127.0.0.1", "127.0.0.2"


class Site:
    """A TLS server for one name, and what it was asked for."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.answers = regular_answers()
        self.asked: list[str] = []
        site = self

        class Dav(KeepAliveHandler):
            def do_PROPFIND(self) -> None:
                self.read_body()
                site.asked.append(self.path)
                answer = site.answers.get(("PROPFIND", self.path), (404, b"", {}))
                assert isinstance(answer, tuple)
                self.reply(*answer)

        self.server = start(Dav, tls=context)
        self.port = self.server.server_port


@pytest.fixture
def site(tmp_path, monkeypatch) -> Iterator[Site]:
    """``dav.test`` is public here, ``inner.test`` private; both are this server."""
    client = ssl.create_default_context()
    file, context = issue(tmp_path, "dav.test")
    client.load_verify_locations(file)
    addresses = {"dav.test": [PUBLIC], "inner.test": [PRIVATE], "mixed.test": [PUBLIC, PRIVATE]}
    real = socket.getaddrinfo

    def getaddrinfo(host, port, *args, **kwargs):
        found = addresses.get(host, [host])
        return [each for address in found for each in real(address, port, *args, **kwargs)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(ssrf_guard, "is_public", lambda address: address == PUBLIC)
    monkeypatch.setattr(transport, "tls", lambda: client)
    transport._built.cache_clear()
    found = Site(context)
    with ExitStack() as ending:
        ending.callback(transport._built.cache_clear)
        ending.callback(stop, found.server)
        yield found


def test_a_public_name_is_called_and_its_certificate_checked(site):
    assert found_at(f"https://dav.test:{site.port}", allow_private=False).addresses == ("ada@example.org",)


@pytest.mark.parametrize("host", ["inner.test", "mixed.test", PRIVATE])
def test_a_name_of_a_private_address_is_not_called(site, host):
    with pytest.raises(FieldRefused, match="private"):
        found_at(f"https://{host}:{site.port}", allow_private=False)
    assert site.asked == []


@pytest.mark.parametrize("target", ["https://inner.test:{port}/dav/", "https://127.0.0.2:{port}/dav/"])
def test_a_redirect_to_a_private_address_is_not_followed(site, target):
    location = target.format(port=site.port)
    site.answers["PROPFIND", "/.well-known/caldav"] = (301, b"", {"Location": location})
    with pytest.raises(FieldRefused, match="private") as raised:
        found_at(f"https://dav.test:{site.port}", allow_private=False)
    assert raised.value.field == "url"
    assert site.asked == ["/.well-known/caldav"]


def test_a_password_is_not_sent_without_tls_after_a_redirect(site):
    site.answers["PROPFIND", "/.well-known/caldav"] = (301, b"", {"Location": "http://dav.test/dav/"})
    with pytest.raises(FieldRefused, match="TLS"):
        found_at(f"https://dav.test:{site.port}", allow_private=False)


def test_an_account_that_names_a_private_home_is_refused(site):
    status, body, headers = site.answers["PROPFIND", "/me/"]
    inner = f"https://inner.test:{site.port}/home/".encode()
    site.answers["PROPFIND", "/me/"] = (status, body.replace(b"/home/", inner), headers)
    with pytest.raises(FieldRefused, match="private"):
        found_at(f"https://dav.test:{site.port}", allow_private=False)
    assert "/home/" not in site.asked
