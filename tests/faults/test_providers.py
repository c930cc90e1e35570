"""Providers that are down, throttle, flap, hang or answer nonsense."""

from __future__ import annotations

import pytest

from tests.faults.measured import AFTER_A_PAUSE, BACK
from tests.faults.questions import Verdict

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

ILLS = {
    "503": ("a provider is down (503)", {"status": 503}, {"502"}),
    "429": (
        "a provider throttles (429, `Retry-After: 2`)",
        {"status": 429, "retry_after": 2},
        {"429"},
    ),
    "html": ("a provider answers a page of HTML", {"body": "html"}, {"502"}),
    "truncated": ("a provider answers half of its JSON", {"body": "truncated"}, {"502"}),
    "reset": ("a provider resets every connection", {"body": "reset"}, {"502"}),
    "hanging": ("a provider takes a minute", {"latency_ms": 60_000}, {"502"}),
}


@pytest.mark.parametrize("provider", ["google", "microsoft"])
@pytest.mark.parametrize("ill", ILLS)
def test_provider_fails(world, fault, ill, provider):
    what, injected, sees = ILLS[ill]
    what = what.replace("a provider", provider.capitalize())
    with fault(world, what, sees={Verdict.PARTIAL}, may=sees | {"422", "502", "429", "409"}) as case:
        world.sandbox.fault(provider=provider, **injected)
        case.run_for(4.0)
        case.until_seen()
        world.sandbox.clear_faults()
        case.wait_for_recovery(within=AFTER_A_PAUSE)


def test_both_providers_flap(world, fault):
    with fault(
        world,
        "both providers are down every other half second",
        sees=set(),
        may={Verdict.PARTIAL, "502", "429"},
    ) as case:
        rounds = 0
        # On a busy machine some rounds pass without a call.
        while rounds < 6 or world.failed_calls() < 6:
            assert rounds < BACK, "the providers have not failed"
            world.sandbox.fault(status=503)
            case.run_for(0.5)
            world.sandbox.clear_faults()
            case.run_for(0.5)
            rounds += 1
        case.wait_for_recovery(within=AFTER_A_PAUSE)
