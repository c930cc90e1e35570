"""Texts of clients and providers: a right value, or the expected failure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import quote_from_bytes
from zoneinfo import ZoneInfo

import pytest
from dateutil.parser import isoparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.schemas import timestamps
from providers.http.send import retry_after
from providers.timestamps import instant, wall_instant
from scheduling.zones import iana_zone, windows_zone
from tests.conftest import Api
from tests.fuzz.counting import count
from tests.fuzz.mutations import TIMES, ZONES

pytestmark = pytest.mark.fuzz

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# From the second of January 1970 to the end of 2199, in microseconds.
RIGHT = st.integers(86_400_000_000, 7_258_032_000_000_000).map(
    lambda at: (EPOCH + timedelta(microseconds=at)).isoformat().replace("+00:00", "Z")
)
LETTERS = st.text(st.sampled_from("0123456789-:.,TWZz+ \u0661é"), max_size=30)


@st.composite
def nearly(draw: st.DrawFn) -> str:
    """A valid time, or one with a change or two."""
    count("texts tried as times or zones")
    written = draw(RIGHT | st.sampled_from(TIMES))
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(written)))
        written = written[:place] + draw(LETTERS)[:2] + written[place + draw(st.integers(0, 2)) :]
    return written


TEXTS = nearly() | LETTERS | st.text(max_size=40)


@given(TEXTS)
def test_a_time_of_a_caller_is_read_or_refused(text: str):
    try:
        moment = timestamps.parse(text)
    except timestamps.NotATimestamp:
        return
    assert isinstance(moment.milliseconds(ZoneInfo("Europe/Berlin")), int)


@given(st.integers(-(2**70), 2**70))
def test_a_number_of_a_caller_is_read_or_refused(number: int):
    try:
        assert timestamps.from_milliseconds(number).milliseconds(ZoneInfo("UTC")) == number
    except timestamps.NotATimestamp:
        assert not 0 <= number <= 7_258_118_399_999


@given(RIGHT)
def test_a_right_time_means_the_same_to_every_reader(text: str):
    truth = (isoparse(text) - EPOCH).total_seconds() * 1000
    assert timestamps.parse(text).milliseconds(ZoneInfo("UTC")) == truth // 1
    assert instant(text) == truth // 1
    assert instant(text, up=True) == -(-truth // 1)
    assert wall_instant(text, UTC) == truth // 1


@given(TEXTS, st.booleans())
def test_a_time_of_a_provider_is_read_or_a_value_error(text: str, up: bool):
    for read in (lambda: instant(text, up=up), lambda: wall_instant(text, ZoneInfo("Asia/Tokyo"), up=up)):
        try:
            assert isinstance(read(), int)
        except (ValueError, OverflowError):
            continue


@given(st.sampled_from(ZONES) | st.text(max_size=30) | LETTERS)
def test_a_zone_is_one_that_can_be_loaded_or_none(name: str):
    count("texts tried as times or zones")
    zone = iana_zone(name)
    if zone is not None:
        ZoneInfo(zone)
    assert windows_zone(name) is None or isinstance(windows_zone(name), str)


@given(TEXTS | st.integers().map(str) | st.floats().map(str))
def test_a_wait_is_seconds_or_unknown(text: str):
    seconds = retry_after(text)
    assert seconds is None or 0 <= seconds < 10**12


NAMES = (
    "start",
    "end",
    "slotDuration",
    "padding",
    "paddingBefore",
    "paddingAfter",
    "minimumNotice",
    "maxOverlaps",
    "provider",
    "calendarIds",
    "limit",
    "cursor",
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(query=st.binary(max_size=80), zone=TEXTS, name=st.sampled_from(NAMES), value=TEXTS)
def test_any_query_is_answered_or_refused(api: Api, query: bytes, zone: str, name: str, value: str):
    count("queries tried")
    headers = {"X-Timezone": zone.encode("ascii", "replace").decode().replace("\n", " ").replace("\r", " ")}
    for path in ("/users/nobody/scheduling", "/users/nobody/calendar/busy", "/webhooks"):
        one = api.call("GET", path, headers=headers, query_string=quote_from_bytes(query, safe="&=+%;"))
        two = api.get(path, headers=headers, **({"start": "2026-12-03", "end": "2026-12-04"} | {name: value}))
        for answer in (one, two):
            assert answer.status_code in (200, 400, 404), answer.text
