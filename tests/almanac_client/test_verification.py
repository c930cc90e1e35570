"""The check of received webhooks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook

from almanac_client import NotVerified, verify_webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = (
    '{"type": "calendar.changed", "timestamp": "2026-11-20T09:00:00.000Z", "more": 1,'
    ' "data": {"userId": "ada", "provider": "google", "calendarId": "primary"}}'
)


def signed(body: str = BODY, *, secret: str = SECRET, age: timedelta = timedelta()) -> dict[str, str]:
    """The headers of a webhook."""
    sent = datetime.now(UTC) - age
    return {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": str(int(sent.timestamp())),
        "Webhook-Signature": Webhook(secret).sign("msg_1", sent, body),
    }


@pytest.mark.parametrize("payload", [BODY, BODY.encode()])
def test_a_signed_webhook_is_an_event(payload):
    event = verify_webhook(payload, signed(), SECRET)

    assert (event.type, event.timestamp) == ("calendar.changed", datetime(2026, 11, 20, 9, tzinfo=UTC))
    assert (event.data.user_id, event.data.provider, event.data.calendar_id) == ("ada", "google", "primary")


@pytest.mark.parametrize(
    ("payload", "headers"),
    [
        (BODY.replace("ada", "eve"), signed()),
        (BODY, signed(secret="whsec_" + "A" * 32)),
        (BODY, signed(age=timedelta(hours=1))),
        (BODY, signed(age=-timedelta(hours=1))),
        (BODY, {}),
        (BODY, signed() | {"Webhook-Signature": "v1"}),
        (BODY, signed() | {"Webhook-Signature": "v1,a"}),
        (BODY, signed() | {"Webhook-Timestamp": "now"}),
        ("[]", signed("[]")),
        (b"\xff", signed()),
    ],
    ids=[
        "changed",
        "other secret",
        "old",
        "early",
        "unsigned",
        "short",
        "no base64",
        "no time",
        "no event",
        "no text",
    ],
)
def test_any_other_is_not_verified(payload, headers):
    with pytest.raises(NotVerified):
        verify_webhook(payload, headers, SECRET)


def test_a_secret_that_is_none_is_the_callers_error():
    with pytest.raises(ValueError, match=r"base64|padding|multiple"):
        verify_webhook(BODY, signed(), "whsec_a")
