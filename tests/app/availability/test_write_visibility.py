"""A write through one connection is seen at once through another connection of the mailbox."""

from __future__ import annotations

import time

import pytest

from app.events import worker_calls
from providers.base import PRIMARY, Failed
from providers.errors import Reason
from store.sql.queries import connection_rows
from tests.app.at_provider import AtProvider
from tests.app.days import DAY, periods
from tests.conftest import stores_of
from workers.jobs import DeleteEvent, Reply

pytestmark = pytest.mark.usefixtures("worker")

BUSY_AT_NINE = [("09:00", "10:00")]


@pytest.fixture
def account(sandbox, provider):
    return sandbox.account(provider, "ada@example.com")


@pytest.fixture
def users(account, new_user):
    """Two users, each with a connection to the account."""
    return [new_user(account), new_user(account)]


@pytest.fixture
def busy(api):
    return lambda user: periods(api.get(f"/users/{user}/calendar/busy", primaryOnly="true", **DAY))


@pytest.mark.parametrize("provider", ["google"])
@pytest.mark.parametrize(
    ("failed", "may_have_succeeded"),
    [
        (Failed(Reason.PROVIDER_ERROR, "no answer"), True),
        (Failed(Reason.ACCESS_DENIED, "refused after an attempt without an answer", repeated=True), True),
        (Failed(Reason.ACCESS_DENIED, "refused"), False),
    ],
    ids=["no answer", "refused at the second attempt", "refused"],
)
def test_a_failed_write_that_may_have_succeeded_is_seen_too(
    api, account, users, busy, sandbox, monkeypatch, failed, may_have_succeeded
):
    """The worker may have died before it invalidated anything."""
    one, other = users
    assert [busy(one), busy(other)] == [[], []]
    AtProvider(sandbox, account).post()
    application = api.client.application
    with stores_of(application).database.reading() as session:
        (ref,) = connection_rows.of_user(session, one, organization_id=None)
    jobs = {ref.id: DeleteEvent(ref.id, PRIMARY, "event", None)}

    with application.app_context(), monkeypatch.context() as patched:
        patched.setattr(worker_calls, "gather", lambda *_args, **_named: {ref.id: Reply(failed=failed)})
        worker_calls.write_events(jobs, deadline=time.monotonic() + 1)

    # The provider is asked again about the connection of the write, whatever the failure.
    assert busy(one) == BUSY_AT_NINE
    assert busy(other) == (BUSY_AT_NINE if may_have_succeeded else [])
