"""A server of feeds, and the adapter that reads them in the network of the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from providers.ics.client import SubscribedCalendars
from providers.ics.feeds import Feeds, FeedSettings
from tests.providers.ics.server import FeedServer, feed_server


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[FeedServer]:
    """A server of feeds."""
    with feed_server() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    """The clock of the adapter."""
    return Clock()


@pytest.fixture
def feeds(clock: Clock) -> Feeds:
    """The feeds of one process."""
    return Feeds(FeedSettings(allow_private=True), clock)


@pytest.fixture
def adapter(feeds: Feeds) -> SubscribedCalendars:
    """The adapter."""
    return SubscribedCalendars(feeds)
