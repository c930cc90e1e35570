"""A network that is slow for all workers: reads take their time, and none fails for it."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from app.server.supervisor import sandbox_environment
from tests.app.days import PROVIDERS
from tests.faults import proxy
from tests.installation.builder import installed
from tests.installation.processes import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MEMBERS = 24
# Seconds in which a chunk crosses the network. An answer takes twice as long, and no probe gets one in time.
ONE_WAY = 1.0
DEADLINE = "10"


def test_no_read_fails_when_all_workers_take_themselves_for_cut_off(environment, sandbox, unique, tmp_path):
    slug = unique("slow")
    with proxy.network(free_port(), urlsplit(sandbox.url).port) as way:
        reached = sandbox_environment(f"http://127.0.0.1:{way.port}")
        with installed(
            environment | reached,
            tmp_path,
            workers=("worker1", "worker2"),
            ALMANAC_FANOUT_DEADLINE=DEADLINE,
        ) as installation:
            made = installation.call("POST", "/organizations", json={"name": slug, "slug": slug})
            assert made.ok, made.text
            for number in range(MEMBERS):
                account = sandbox.account(PROVIDERS[number % 2], f"{unique('member')}@example.com")
                user = installation.user(unique(f"member{number}"), account)
                added = installation.call("POST", f"/organizations/{slug}/members", json={"userIds": [user]})
                assert added.ok, added.text
            way.seconds = ONE_WAY

            answer = installation.get(
                f"/organizations/{slug}/scheduling",
                start="2027-03-01T08:00:00Z",
                end="2027-03-02T08:00:00Z",
            )

            assert answer.status_code == 200, answer.text
            assert answer.json()["failedUsers"] == []
            assert "unreachable from this worker: google" in installation.output()
