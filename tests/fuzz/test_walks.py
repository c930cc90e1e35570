"""Walks through the whole API, by every kind of key: the document holds, and nothing leaks."""

from __future__ import annotations

import os
import secrets

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.schemas import APIOperation
from sqlalchemy import delete

from providers.sandbox.client import Sandbox
from store.sql.models import WebhookEndpoint
from store.stores import Stores
from tests.conftest import Api
from tests.fuzz.conversations import NAMES
from tests.fuzz.walks import BY_LABEL, Step, Walker, walks
from tests.security.keys import IN_FORCE, create
from tests.security.tenants import Tenant, settle

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(3600), pytest.mark.usefixtures("worker")]

# The deletion of a user or an organization deletes also what others would delete.
OWNERS = ("DELETE /v1/users/{userId}", "DELETE /v1/organizations/{orgSlug}")
WALKS = max(4, int(os.environ.get("ALMANAC_EXAMPLES", "40")) // 5)


@pytest.mark.parametrize("kind", IN_FORCE)
def test_a_walk_keeps_to_the_document_and_learns_nothing(
    app: Flask, api: Api, sandbox: Sandbox, stores: Stores, kind: str
):
    rights = IN_FORCE[kind]
    operations = documented(app)

    def place(provider: str = "google") -> Tenant:
        return settle(api, sandbox, stores, f"planted{secrets.token_hex(4)}", provider)

    def walk(own: Tenant, chosen: list[Step]) -> None:
        walker.walk(own, chosen, create(stores, rights, own.slug))
        # Endpoints of one walk receive nothing of the next.
        with stores.database.writing() as session:
            session.execute(delete(WebhookEndpoint))

    walker = Walker(api, place(), rights.bound)
    # A key that may see it, sees it.
    assert walker.foreign.user in api.get("/users").text

    # First every operation with valid values, deletions last; then random ones.
    def order(step: Step) -> tuple[bool, bool]:
        label = step.operation.label
        return BY_LABEL[label].ends, label in OWNERS

    walk(place(), sorted(map(Step, operations), key=order))

    @settings(
        max_examples=WALKS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(NAMES), walks(operations))
    def holds(provider: str, chosen: list[Step]) -> None:
        walk(place(provider), chosen)

    holds()
    assert walker.answered.keys() == BY_LABEL.keys()
    silent = [
        label
        for label, row in BY_LABEL.items()
        if row.kind != "write"
        and rights.may(row.kind)
        and not (rights.bound and row.bound)
        and not walker.answered[label] & {200, 201, 302}
    ]
    assert not silent, "no call succeeded"


def documented(app: Flask) -> list[APIOperation]:
    """Every operation of the document; our key goes into the calls."""
    config = SchemathesisConfig.from_dict({"generation": {"with-security-parameters": False}})
    schema = schemathesis.openapi.from_wsgi("/v1/openapi.json", app, config=config)
    return [found.ok() for found in schema.get_all_operations()]
