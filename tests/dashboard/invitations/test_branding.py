"""The pages that customers see are in the operator's name and colour, and say what is read."""

from __future__ import annotations

import base64

import pytest
from bs4 import BeautifulSoup

from app.accounts.customer_pages import ink_on
from store.config import branding
from store.config.settings import SettingsError
from tests.dashboard.visiting import words

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.fixture
def logo(tmp_path):
    file = tmp_path / "logo.SVG"
    file.write_bytes(SVG)
    return str(file)


def page_of(answer):
    return BeautifulSoup(answer.get_data(as_text=True), "html.parser")


def test_pages_are_in_the_name_of_the_operator(new_app, invited, logo):
    app = new_app(operator_name="Acme <b>Clinics</b>", operator_logo=logo, operator_colour="#ffd200")
    guest, (_, path) = app.test_client(), invited()
    for address in (path, f"{path}/form/caldav", "/invitation/unknown", "/v1/oauth/google/callback?state=x"):
        answer = guest.get(address)
        page = page_of(answer)
        assert page.title.text.endswith("Acme <b>Clinics</b>")
        assert words(page.select_one(".operator")) == "Acme <b>Clinics</b>"
        assert page.img["src"] == f"data:image/svg+xml;base64,{base64.b64encode(SVG).decode()}"
        assert "--brand: #ffd200; --on-brand: #000" in page.style.text
        policy = answer.headers["Content-Security-Policy"]
        assert "img-src data:;" in policy
        assert policy.startswith("default-src 'none'")
    assert words(page_of(guest.get(path)).h1) == "Connect your calendar with Acme <b>Clinics</b>"


def test_a_logo_that_cannot_be_read_is_left_out(new_app, invited, caplog):
    guest = new_app(operator_logo="/nowhere/logo.png").test_client()
    answer = guest.get(invited()[1])
    assert (answer.status_code, page_of(answer).img) == (200, None)
    assert "ALMANAC_OPERATOR_LOGO cannot be read" in caplog.text


def test_without_settings_the_pages_name_nobody(app, invited):
    page = page_of(app.test_client().get(invited()[1]))
    assert page.select(".operator, img") == []
    assert page.title.text.endswith("Almanac")


@pytest.mark.parametrize(
    ("scope", "does", "never"),
    [
        ("write", "Adds and changes events for bookings", "Reads your e-mails, contacts or files"),
        ("read", "Reads the events of your calendars", "Changes your events"),
        ("free-busy", "Reads when you are busy", "Reads what your events are about, or who takes part"),
    ],
)
def test_an_invitation_says_what_is_read_and_what_never_is(app, invited, scope, does, never):
    allowed, forbidden = page_of(app.test_client().get(invited(scope)[1])).select(".boundary ul")
    assert does in [words(each) for each in allowed.select("li")]
    assert never in [words(each) for each in forbidden.select("li")]
    assert "Reads when you are busy" in words(allowed)


@pytest.mark.parametrize(
    ("name", "content"),
    [("logo.gif", b"GIF"), ("logo.png", b""), ("logo.png", b"x" * (256 * 1024 + 1)), ("none.png", None)],
)
def test_a_logo_is_a_small_image_that_can_be_read(tmp_path, name, content):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SettingsError, match="ALMANAC_OPERATOR_LOGO"):
        branding.logo(str(tmp_path / name))


def test_a_colour_is_hexadecimal():
    assert [branding.colour(each) for each in ("#2F55C8", "2f55c8", "")] == ["#2f55c8", "#2f55c8", ""]
    for wrong in ("blue", "#fff", "#2f55c8;}", "#"):
        with pytest.raises(SettingsError, match="ALMANAC_OPERATOR_COLOUR"):
            branding.colour(wrong)


@pytest.mark.parametrize(
    ("colour", "ink"), [("#000000", "#fff"), ("#ffffff", "#000"), ("#ffd200", "#000"), ("#2f55c8", "#fff")]
)
def test_text_on_the_colour_can_be_read(colour, ink):
    assert ink_on(colour) == ink
