"""Answers of providers with something wrong: read right, or named as failed; garbage is never free time."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from providers.base import Failed, Read
from providers.errors import ProviderError
from providers.event_views import event_view
from providers.events import CreateResult, Event
from tests.fuzz.conversations import END, START, TEAM, Conversation, Recorded
from tests.fuzz.counting import count
from tests.fuzz.operations import OPERATIONS, READS
from tests.fuzz.strict import uncovered
from tests.fuzz.truth import Claims, claims
from workers.fanout.codec import pack_body, unpack_body
from workers.jobs import Reply

pytestmark = pytest.mark.fuzz

# A failing seed is reproducible as it is: a smaller one would be another mutation.
AS_THEY_COME = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate], print_blob=True)
SEEDS = st.integers(0, 2**64 - 1).map(Random)


def outcomes(recorded: Recorded, conversation: Conversation) -> dict[str, Any]:
    """The adapter's outcomes of a conversation, after their journey to the web tier."""
    count("answers of providers mutated")
    with conversation.replayed():
        try:
            found = OPERATIONS[conversation.operation](recorded.adapter, recorded.account, recorded.provider)
        except ProviderError as error:
            named(error)
            return {}
    name = "outcomes" if conversation.operation == "busy" else "events"
    return getattr(unpack_body(pack_body(Reply(**{name: found}))), name)


def named(error: ProviderError) -> None:
    """A failure with a message for the client."""
    assert error.message
    assert error.operation is not None


def travels(operation: str, found: Any) -> None:
    """Take the outcomes to the web tier, and into an answer."""
    match found:
        case None:
            return
        case CreateResult():
            reply = Reply(events={"primary": (found.event,)}, made=found.made)
        case Event():
            reply = Reply(events={"primary": (found,)})
        case list():
            reply = Reply(calendars=tuple(found))
        case _:
            reply = Reply(**{"outcomes" if operation == "busy" else "events": found})
    arrived = unpack_body(pack_body(reply))
    assert arrived.calendars == reply.calendars
    assert arrived.events == reply.events
    for each in (
        event for events in arrived.events.values() if not isinstance(events, Failed) for event in events
    ):
        orjson.dumps(event_view(each, "primary"))


def periods(outcome: Any) -> list[tuple[int, int]]:
    if isinstance(outcome, Read):
        return outcome.busy.pairs()
    return [(event.start, event.end) for event in outcome]


def looks_free(found: dict[str, Any], calendar: str, said: Claims) -> list[tuple[int, int]]:
    """The periods that are busy in these claims and free in the outcome of a calendar."""
    truth = said[calendar]
    assert truth is not None
    return uncovered(truth, periods(found[calendar]), START, END)


@pytest.mark.parametrize("operation", READS)
def test_busy_time_stays_busy_with_mutated_answers(recorded: Recorded, operation):
    conversation = recorded.conversations[operation]
    calendars = ["primary", TEAM[recorded.provider]]
    truth = claims(conversation, recorded.provider, calendars)
    whole = outcomes(recorded, conversation)
    assert not any(looks_free(whole, each, truth) for each in calendars), "the two readers do not agree"

    @AS_THEY_COME
    @given(SEEDS)
    def holds(random: Random) -> None:
        mutated = conversation.with_one_mutated(random)
        found, said = outcomes(recorded, mutated), claims(mutated, recorded.provider, calendars)
        assert found.keys() in (set(), set(calendars))
        for each in found:
            if isinstance(found[each], Failed):
                count("mutated answers by which a calendar is named as failed")
            elif operation == "events":
                # A list leaves out what cannot be shown: at most the one event that was changed.
                count("mutated answers by which an event may be left out of a list")
                claimed = said[each]
                assert claimed is None or len(found[each]) >= len(claimed) - 1
            elif said[each] is None or looks_free(found, each, said):
                # The answer is doubtful: then the true periods from before must be busy.
                assert not looks_free(found, each, truth), mutated.answers.values()

    holds()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_answer_makes_an_adapter_fail_in_another_way(recorded: Recorded, operation):
    conversation = recorded.conversations[operation]

    @AS_THEY_COME
    @given(SEEDS, st.integers(1, 4))
    def holds(random: Random, changes: int) -> None:
        count("answers of providers mutated")
        mutated = conversation.with_one_mutated(random, changes)
        with mutated.replayed():
            try:
                found = OPERATIONS[operation](recorded.adapter, recorded.account, recorded.provider)
            except ProviderError as error:
                return named(error)
        return travels(operation, found)

    holds()
