"""One slot of one mailbox or room is taken once, through whichever user, connection or organization.

``make test-races ROUNDS=200`` runs all of it, one race after the other, and prints the table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import pytest

from store.config.settings import new_secrets
from tests.app.days import PROVIDERS
from tests.app.events.racing import HEAD, OPERATIONS, WAYS, Race, Tally, delegated_room, line, two_users
from tests.databases import KINDS, new_database
from tests.installation.builder import Installation, installed
from tests.installation.processes import web_server

ROUNDS = int(os.environ.get("ALMANAC_RACE_ROUNDS", "6"))
WORKERS = ("worker1", "worker2")
# Seconds: the deadline of a fan-out, and what the start of everything may take.
DEADLINE, PATIENCE = 5, 300.0
# The rounds in which a worker is killed.
KILL_EVERY, FIRST_KILL = 10, 4

# Every race of a kind of operation by itself is left to the long run.
RACES = [
    pytest.param(OPERATIONS, id="mixed"),
    *(pytest.param((each,), id=each, marks=pytest.mark.long) for each in OPERATIONS),
]

# Two holds of one slot are a matter of the database, where all ways are alike.
FEW = (two_users, delegated_room)
WAYS_OF_TWO = [each if each in FEW else pytest.param(each, marks=pytest.mark.long) for each in WAYS]

# Whole installations on both databases: `make test-races`.
pytestmark = [pytest.mark.long, pytest.mark.timeout(400 + 30 * ROUNDS)]


@dataclass
class Running:
    """An installation with two workers and two web processes, whose URLs are apart."""

    kind: str
    installation: Installation
    urls: tuple[str, str]


@pytest.fixture(scope="module", params=KINDS)
def running(request, environment, tmp_path_factory) -> Iterator[Running]:
    """On each kind of database."""
    folder = tmp_path_factory.mktemp("races")
    secret, encryption = new_secrets()
    with new_database(request.param, folder) as url:
        ours = environment | {"ALMANAC_DATABASE_URL": url, "ALMANAC_FANOUT_DEADLINE": f"{DEADLINE}"}
        ours |= {"ALMANAC_SECRET_KEY": secret, "ALMANAC_ENCRYPTION_KEYS": encryption}
        with (
            installed(ours, folder, workers=WORKERS, patience=PATIENCE) as made,
            web_server(made.environment) as port,
        ):
            yield Running(request.param, made, (made.url, f"http://127.0.0.1:{port}"))


@pytest.fixture(scope="module")
def note() -> Callable[[Tally], None]:
    """Show the outcome of a race as a row of a table, with ``pytest -s``."""
    rows = list(HEAD)

    def show(tally: Tally) -> None:
        rows.append(tally.row)
        sys.stdout.write("\n" + "\n".join(map(line, rows)) + "\n")
        rows.clear()

    return show


def is_killed(number: int) -> bool:
    return number % KILL_EVERY == FIRST_KILL


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("operations", RACES)
@pytest.mark.parametrize("settle", WAYS)
def test_exactly_one_of_all_ways_takes_a_slot(settle, operations, provider, running, sandbox, unique, note):
    name = unique(settle.__name__.replace("_", "-"))
    contested = settle(running.installation, sandbox, provider, name)
    race = Race(running.installation, contested, running.urls, WORKERS, Random(name))
    what = f"{settle.__name__}, {'+'.join(operations)}, {provider}, {running.kind}"

    tally = race.run(what, operations, ROUNDS, is_killed)

    note(tally)
    assert tally.holds_true, tally


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("settle", WAYS_OF_TWO)
def test_one_overlap_admits_two_holds_and_never_three(settle, provider, running, sandbox, unique, note):
    name = unique(f"two-{settle.__name__.replace('_', '-')}")
    contested = settle(running.installation, sandbox, provider, name)
    race = Race(running.installation, contested, running.urls, WORKERS, Random(name), overlaps=1)
    what = f"{settle.__name__}, hold with maxOverlaps=1, {provider}, {running.kind}"

    tally = race.run(what, ("hold",), ROUNDS, lambda _: False)

    note(tally)
    assert tally.holds_true, tally
