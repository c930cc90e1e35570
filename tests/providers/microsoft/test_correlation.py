"""Graph receives the request id in a header; no other server does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from providers.base import ChannelRequest, Token
from providers.errors import ProviderError
from providers.events import Changes
from providers.google.client import Google
from providers.microsoft.client import Microsoft
from providers.microsoft.subscriptions import MicrosoftSubscriptions
from tests.providers.addresses import google_at, microsoft_at

DEADLINE_SECONDS = 5.0


@pytest.fixture
def sent_ids(script, scripted_account, soon):
    """The request ids that a server receives from failing calls made for a request."""
    script.say(404, {"error": {"code": "ErrorItemNotFound"}})
    account = replace(scripted_account, request_id="abc.1")

    def make(call, account=account):
        with pytest.raises(ProviderError):
            call(account, soon(DEADLINE_SECONDS))
        assert script.requests
        return [
            {name.lower(): value for name, value in each["headers"].items()}.get("client-request-id")
            for each in script.requests
        ]

    return make


CALLS = {
    "calendars": lambda graph, account, end: graph.calendars(account, deadline=end),
    "busy": lambda graph, account, end: graph.busy(account, ["primary"], 0, 1, deadline=end),
    "event": lambda graph, account, end: graph.event(account, "primary", "e", deadline=end),
    "update": lambda graph, account, end: graph.update_event(
        account, "primary", "e", Changes(subject="Planning"), deadline=end
    ),
    "delete": lambda graph, account, end: graph.delete_event(
        account, "primary", "e", notify=None, deadline=end
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_call_to_graph_names_its_request(sent_ids, script, call):
    graph = Microsoft(microsoft_at(script.url))

    assert set(sent_ids(lambda account, end: call(graph, account, end))) == {"abc.1"}


def test_a_subscription_names_its_request(sent_ids, script):
    subscriptions = MicrosoftSubscriptions(microsoft_at(script.url))
    wanted = ChannelRequest("id", Token("secret"), "https://example.com")

    asked = sent_ids(lambda account, end: subscriptions.open(account, "primary", wanted, deadline=end))
    assert set(asked) == {"abc.1"}


def test_without_a_request_there_is_no_header(sent_ids, script, scripted_account):
    graph = Microsoft(microsoft_at(script.url))

    asked = sent_ids(lambda account, end: graph.calendars(account, deadline=end), account=scripted_account)
    assert set(asked) == {None}


def test_google_gets_no_header(sent_ids, script):
    google = Google(google_at(script.url))

    assert set(sent_ids(lambda account, end: google.calendars(account, deadline=end))) == {None}
    assert "abc.1" not in str(script.requests)
