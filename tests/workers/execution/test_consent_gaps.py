"""A grant that lacks something does not replace a connection that has it."""

from __future__ import annotations

from providers.scopes import Operation
from workers.execution.consent_gaps import Permission, join_names, missing_permissions


def test_missing_operations_are_listed_in_words():
    wanted = {Operation.FREE_BUSY, Operation.LIST_EVENTS, Operation.INSERT_EVENT}

    missing = missing_permissions(wanted, {Operation.FREE_BUSY})

    assert join_names(missing) == "reading events and changing events"
    assert missing_permissions(wanted, wanted) == ()


def test_every_operation_belongs_to_a_permission():
    assert set().union(*(each.operations for each in Permission)) == set(Operation)
