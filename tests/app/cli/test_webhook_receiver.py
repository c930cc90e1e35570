"""The receiver of the demo prints signed events once each."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from flask import Flask
from flask.testing import FlaskClient
from standardwebhooks import Webhook

from app.cli import webhook_receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CHANGED = json.dumps(
    {"type": "calendar.changed", "timestamp": "2026-11-23T09:00:00.000Z", "data": {"userId": "ada"}}
)


@pytest.fixture
def printed() -> list[str]:
    return []


@pytest.fixture
def receiver(printed: list[str]) -> FlaskClient:
    app = Flask("receiver")
    webhook_receiver.install(app, SECRET, printed.append)
    return app.test_client()


def signed(message: str, secret: str = SECRET) -> dict[str, str]:
    now = datetime.now(UTC)
    return {
        "webhook-id": message,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(message, now, CHANGED),
    }


def test_an_event_is_printed_once_although_it_is_sent_twice(receiver, printed):
    for _ in range(2):
        answer = receiver.post(webhook_receiver.PATH, data=CHANGED, headers=signed("msg_1"))
        assert answer.status_code == 204
    receiver.post(webhook_receiver.PATH, data=CHANGED, headers=signed("msg_2"))

    assert printed == ["webhook calendar.changed userId=ada"] * 2


@pytest.mark.parametrize("headers", [{}, signed("msg_1", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")])
def test_what_is_not_signed_by_the_secret_is_refused(receiver, printed, headers):
    answer = receiver.post(webhook_receiver.PATH, data=CHANGED, headers=headers)

    assert answer.status_code == 400
    assert printed == []
