"""Work that admission never refuses, even if the queue is full, because no client could retry it."""

from __future__ import annotations

import pytest

from app.services import EXTENSION
from tests.app.consenting import ADA, BOTH, arrive, connected, consent, link
from tests.app.days import DAY
from workers.fanout.admission import QueueFull

pytestmark = pytest.mark.usefixtures("worker")


@pytest.fixture
def full(monkeypatch):
    """Fills the admission queues of an application."""

    def fill(app):
        def refuse(queue, name, seconds):
            raise QueueFull("as many as may wait")

        monkeypatch.setattr(app.extensions[EXTENSION].fanout._admission, "enter", refuse)

    return fill


def test_a_read_is_refused(api, app, sandbox, new_user, full):
    user = new_user(sandbox.account("google", ADA))
    full(app)

    answer = api.get(f"/users/{user}/calendar/busy", **DAY)

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")


@BOTH
def test_a_consent_is_completed(allowing, sandbox, new_user, provider, full):
    sandbox.account(provider, ADA)
    user = new_user()
    landed = consent(link(allowing, user, provider))
    full(allowing.client.application)

    answer = arrive(allowing, landed)

    assert answer.status_code == 200
    assert "is connected with" in answer.text
    assert connected(allowing, user, provider)["email"] == ADA


def test_a_grant_that_is_forgotten_is_ended(api, app, sandbox, new_user, full, unique):
    user = new_user(sandbox.account("google", f"{unique('ada')}@example.com"), obtained=True)
    full(app)

    assert api.delete(f"/users/{user}/oauth/google").status_code == 200
    assert sandbox.requests().by_operation == {"google.revoke": 1}
