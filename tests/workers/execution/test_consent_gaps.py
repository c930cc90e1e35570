"""A grant that lacks something does not replace a connection that has it."""

from __future__ import annotations

from providers.scopes import Operation
from workers.execution.consent_gaps import INCOMPLETE, PERMISSIONS, join_names, missing_permissions


def test_missing_operations_are_listed_in_words():
    wanted = {Operation.FREE_BUSY, Operation.LIST_EVENTS, Operation.INSERT_EVENT}

    missing = missing_permissions(wanted, {Operation.FREE_BUSY})

    assert join_names(missing) == "reading events and changing events"
    assert INCOMPLETE[missing].message.startswith(
        "Not everything was granted: reading events and changing events is missing. "
    )
    assert missing_permissions(wanted, wanted) == frozenset()


def test_each_set_of_parts_has_its_sentence():
    assert set().union(*PERMISSIONS.values()) == set(Operation)
    assert len({each.message for each in INCOMPLETE.values()}) == 2 ** len(PERMISSIONS) - 1
