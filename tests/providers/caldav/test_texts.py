"""Texts of calendar objects, ids of calendars, and XML: pure functions."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.caldav import identifiers, lines, writing, xml
from providers.caldav.credentials import BasicCredentials
from providers.caldav.writing import Author
from providers.errors import InvalidCalendarId
from providers.events import Changes, Day, Draft, Moment
from providers.ical.calendar import read
from providers.ical.events import Reader, events
from tests.providers.caldav.conftest import soon
from tests.providers.caldav.scripted import multistatus, response
from tests.providers.caldav.test_servers import at

AUTHOR = Author(("ada@example.org",), "calendar.events.insert")
ACCOUNT = BasicCredentials("u", "ada", "secret", "https://dav.test/me/", ("https://dav.test/home/",), "")

# Characters that a content line can carry.
CONTENT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=200)


@given(st.lists(st.tuples(st.from_regex(r"X-[A-Z]{1,8}", fullmatch=True), CONTENT), max_size=8))
def test_lines_that_are_not_written_are_kept(unknown):
    kept = [f"{name}:{value}" for name, value in unknown]
    inner = "\r\n".join(["BEGIN:VEVENT", "UID:one", *kept, "SUMMARY:Old", "END:VEVENT"])
    whole = lines.parse(f"BEGIN:VCALENDAR\r\n{inner}\r\nEND:VCALENDAR\r\n")
    (event,) = whole.components("VEVENT")
    event.replace("SUMMARY", "SUMMARY:New")
    again = lines.parse(whole.text())
    assert again.text() == whole.text()
    assert again.components("VEVENT")[0].parts == ["UID:one", *kept, "SUMMARY:New"]
    assert all(len(each.encode()) <= 75 for each in whole.text().split("\r\n"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "BEGIN:VCALENDAR",
        "BEGIN:VEVENT\nEND:VEVENT",
        "END:VCALENDAR",
        "BEGIN:VCALENDAR\nEND:VEVENT",
        "BEGIN:VCALENDAR\nEND:VCALENDAR\nBEGIN:VCALENDAR\nEND:VCALENDAR",
        "BEGIN:VCALENDAR\n" + "BEGIN:A\n" * 1000,
    ],
)
def test_a_text_that_is_not_one_calendar_is_an_error(text):
    with pytest.raises(ValueError, match=r"calendar|component"):
        lines.parse(text)


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=100).map(str.strip)
MOMENTS = st.integers(at(0) // 1000, at(0) // 1000 + 366 * 86_400).map(lambda seconds: seconds * 1000)
ZONES = st.sampled_from([None, "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia"])


@given(TEXT, TEXT, TEXT, MOMENTS, st.integers(0, 7 * 86_400), ZONES, st.text(min_size=1, max_size=50))
def test_what_is_written_is_read(subject, description, location, start, seconds, zone, meta_id):
    meta_id = xml.UNWRITABLE.sub("", meta_id) or "m"
    content = Changes(
        subject=subject,
        description=description,
        location=location,
        start=Moment(start, zone),
        end=Moment(start + seconds * 1000, zone),
        meta_id=meta_id,
        meeting_url="https://meet.test/a,b;c",
    )
    draft = Draft(content, key="a" * 64, fingerprint="f" * 64)
    calendar = read(writing.created(draft, "one", AUTHOR).encode(), deadline=soon())
    (found,) = events(calendar, Reader("caldav", "c"), start - 1, start + 8 * 86_400_000, deadline=soon())
    assert (found.start, found.end) == (start, start + seconds * 1000)
    assert (found.subject, found.description, found.location) == (subject, description, location)
    assert (found.meta_id, found.mark) == (meta_id, draft.mark)
    assert found.meeting_url == "https://meet.test/a,b;c"


def test_the_second_of_two_equal_hours_is_written_in_utc():
    # 02:30 comes twice in Berlin on 2026-10-25.
    for utc, expected in ((1792888200000, "TZID=Europe/Berlin:20261025T023000"), (1792891800000, "T013000Z")):
        content = Changes(start=Moment(utc, "Europe/Berlin"), end=Moment(utc + 60_000, "Europe/Berlin"))
        text = writing.created(Draft(content, key="a", fingerprint="f"), "one", AUTHOR)
        assert f"DTSTART;{expected}" in text or f"DTSTART:20261025{expected}" in text


def test_days_are_written_as_days():
    content = Changes(start=Day("2026-11-30"), end=Day("2026-12-01"))
    text = writing.created(Draft(content, key="a", fingerprint="f"), "one", AUTHOR)
    assert "DTSTART;VALUE=DATE:20261130\r\nDTEND;VALUE=DATE:20261201" in text


# Ids.


@pytest.mark.parametrize("path", ["/home/work/", "/remote.php/dav/calendars/a@b/x%20y/", "/a,b;c/"])
def test_an_id_is_a_path_that_every_proxy_passes(path):
    found = identifiers.calendar_id(f"https://dav.test{path}")
    assert found.replace("-", "").replace("_", "").isalnum()
    assert identifiers.calendar_url(found, ACCOUNT, "o") == f"https://dav.test{path}"


def encoded(path: str) -> str:
    return base64.urlsafe_b64encode(path.encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "!",
        "primary",
        encoded("//other.test/home/"),
        encoded("/home/../../admin/"),
        encoded("/home/./"),
        encoded("/home"),
        encoded("home/"),
        encoded("/home/?a/"),
        encoded("/home/#a/"),
        encoded("/ä/"),
        encoded("/a b/"),
        encoded("@other.test/"),
        encoded("/home/") + "=",
        "A" * 3000,
    ],
)
def test_an_id_leads_to_no_other_place(text):
    with pytest.raises(InvalidCalendarId):
        identifiers.calendar_url(text, ACCOUNT, "o")


# XML.


@given(st.binary(max_size=300))
def test_any_bytes_are_xml_or_not(content):
    root = xml.decode(content).get("root")
    assert xml.resources(root, "https://dav.test/") in (None, [])


@pytest.mark.parametrize(
    ("base", "href", "found"),
    [
        ("https://dav.test/a/", "b/", "https://dav.test/a/b/"),
        ("https://dav.test/a/", "/b c/", "https://dav.test/b%20c/"),
        ("https://dav.test/a/", "https://Other.test:443/b", "https://other.test/b"),
        ("https://dav.test/a/", "https://other.test:8443/b", "https://other.test:8443/b"),
        ("https://dav.test/a/", "/b%20c/@d/", "https://dav.test/b%20c/@d/"),
    ],
)
def test_addresses_are_complete(base, href, found):
    assert xml.joined(base, href) == found


@pytest.mark.parametrize("href", ["ftp://dav.test/", "mailto:a@b.c", "https://[/", "https://a:b/"])
def test_other_addresses_are_errors(href):
    with pytest.raises(ValueError, match=r"."):
        xml.joined("https://dav.test/", href)


@pytest.mark.parametrize("href", ["urn:uuid:1234", "mailto:a@b.c", "https://[/"])
def test_a_property_with_what_is_no_address_has_the_other_addresses(href):
    owner = f"<d:owner><d:href>{href}</d:href><d:href>/ada/</d:href></d:owner>"
    _, content, _ = multistatus(response("/home/", owner))
    (found,) = xml.resources(xml.parse(content), "https://dav.test/home/")
    assert found.urls(f"{xml.DAV}owner") == ("https://dav.test/ada/",)
