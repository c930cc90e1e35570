"""The bytes of request bodies that a web process counts, and the errors over its budget."""

from __future__ import annotations

import pytest

from app.http.errors import ApiError
from app.server.body_budget import Charge
from store.coordination.shares import STRANGERS, Quota, SharedPlaces

ACME, RIVAL = 1, 2


@pytest.fixture
def places() -> SharedPlaces:
    return SharedPlaces(Quota.BODY_BYTES, 100, 60)


def test_bytes_are_counted_until_the_body_is_released(places):
    charge = Charge(places, ACME)
    charge.add(20)
    charge.add(30)
    assert places.used_by(ACME) == 50

    charge.release()
    # A second release frees nothing of others.
    Charge(places, ACME).add(10)
    charge.release()

    assert places.used_by(ACME) == 10


def test_over_its_share_a_tenant_gets_the_quota(places):
    charge = Charge(places, ACME)
    charge.add(60)

    with pytest.raises(ApiError) as refused:
        charge.add(1)

    assert refused.value.code == "quotaExceeded"
    assert refused.value.extra_fields["quota"] == "bodyBytes"
    charge.release()
    assert places.largest == 0


@pytest.mark.parametrize(("tenant", "held"), [(RIVAL, 60), (STRANGERS, 60), (STRANGERS, 0)])
def test_over_the_budget_the_sender_may_try_again(places, tenant, held):
    """Senders without a key are not one tenant, so the answer names no quota."""
    if held:
        Charge(places, ACME).add(held)
    else:
        Charge(places, STRANGERS).add(60)

    with pytest.raises(ApiError) as refused:
        Charge(places, tenant).add(41)

    assert (refused.value.code, refused.value.retry_after) == ("overloaded", 1)
