"""The size and the SQL statements of every page at 500 users with 40 problems."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

import pytest
from sqlalchemy import select

from store.sql.models import Administrator, ApiKey, DashboardSession, Role, UserInvitation, WebhookDelivery
from store.sql.queries import administrators, dashboard_sessions
from tests.browser.pages import every_rule
from tests.dashboard import planted
from tests.dashboard.installations import Installation
from tests.dashboard.routes import path
from tests.store.statements import recorded

# A page has 100 rows, and is compressed on the way.
LARGEST = 200_000
FEW, MANY = 100, planted.USERS

# Pages that wait for a worker or a provider, or are for people who are not signed in.
APART = frozenset(
    {
        *("user_calendars", "user_events", "explorer_events", "explorer_why", "explorer_grid", "connected"),
        *("working_hours", "sign_in", "sign_in_code", "welcome", "stale_link", "overview_health"),
    }
)
# Views of pages beside the plain one, by the name of the page.
MORE: Mapping[str, tuple[str, ...]] = {
    "users": ("?show=attention", "?show=connected", "?show=ended", "?show=unconnected", "?q=employee"),
    "organization": ("?show=attention", "?sort=-registered"),
    "invitations": ("?show=expired",),
    "new_invitations": ("?show=attention", "?show=connected"),
    "keys": ("?show=ended",),
    "suggestions": ("?q=e",),
    "palette": ("?q=e",),
    "audit_log": ("?person=ada&since=2020-01-01",),
    "explorer": ("?organization=kestrel",),
}
# Files that hold every row, and are no pages.
FILES = frozenset({"export_users", "export_members", "export_audit_log"})


@pytest.fixture
def planting(install):
    """Plant an installation: ``planting(users)``."""
    made: list[Installation] = []

    def plant(users: int) -> Installation:
        here = install(broker_url="memory://")
        planted.plant(here.stores, users=users)
        made.append(here)
        return here

    yield plant
    for each in made:
        planted.forget(each.stores)


def paths(here: Installation) -> dict[str, str]:
    """The paths of all pages of the planted installation, by a name for people."""
    names = _names(here)
    found = {}
    for name, rule in every_rule().items():
        if name in APART | FILES:
            continue
        for query in ("", *MORE.get(name, ())):
            found[f"{name} {query}".strip()] = path(rule, names) + query
    return found


def _names(here: Installation) -> dict[str, str]:
    with here.stores.database.writing() as session:
        other = administrators.create(session, name="bob", password_hash="nobody's", role=Role.OPERATOR)
        dashboard_sessions.begin(session, other.id, address="192.0.2.1", agent="")
        session.flush()
        mine = session.scalars(select(Administrator.id).where(Administrator.name == "ada")).one()
        browser = session.scalars(
            select(DashboardSession.id).where(DashboardSession.administrator_id == mine)
        ).first()
        delivery, webhook = session.execute(
            select(WebhookDelivery.id, WebhookDelivery.endpoint_id).order_by(WebhookDelivery.id).limit(1)
        ).one()
        return {
            "slug": "kestrel",
            "custom_id": "ada.lovelace",
            "number": "1",
            "provider": "microsoft",
            "endpoint_id": webhook,
            "webhook_id": webhook,
            "delivery_id": delivery,
            "session_id": str(browser),
            "administrator_id": str(other.id),
            "key_id": str(session.scalars(select(ApiKey.id)).first()),
            "invitation_id": str(session.scalars(select(UserInvitation.id)).first()),
            "secret": "x" * 43,
            "kind": "users",
        }


@pytest.mark.slow
def test_page_size_and_statement_count_do_not_grow_with_rows(planting, capsys):
    """It prints a table of all pages: milliseconds until the answer, and those of the processor in it."""
    few, many = planting(FEW), planting(MANY)
    wanted = {"few": paths(few), "many": paths(many)}
    table, large, growing = [], [], []
    for name, where in wanted["many"].items():
        counts = []
        for here, there in ((few, wanted["few"][name]), (many, where)):
            # The second time, as once a minute a page also notes when its browser was last seen.
            for _ in range(2):
                with recorded(here.stores.database) as sent:
                    began, computed = time.perf_counter(), time.thread_time()
                    page = here.browser.get(there)
                    took, computed = time.perf_counter() - began, time.thread_time() - computed
            counts.append(len(sent))
            # Without a sign-in that began here, the way back from the identity provider is a bad request.
            expected = (400,) if name == "sign_in_openid_callback" else (200, 302, 303)
            assert page.status in expected, (name, page.status)
        size = len(page.text.encode())
        times = f"{took * 1000:7.0f} ms {computed * 1000:7.0f} ms"
        table.append(f"{times} {size / 1000:7.1f} kB {counts[1]:4} SQL  {name}")
        if size > LARGEST:
            large.append(f"{name}: {size} bytes")
        if counts[0] != counts[1]:
            growing.append(f"{name}: {counts[0]} statements with {FEW} users, {counts[1]} with {MANY}")
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *sorted(table, reverse=True), ""]))

    assert large == []
    assert growing == []
