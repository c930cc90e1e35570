"""One slot of one mailbox or room is taken once, through whichever user, connection or organization.

``make test-races ROUNDS=200`` runs all of it, one race after the other, and prints the table.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

import pytest
import requests

from store.config.settings import new_secrets
from tests.app.days import PROVIDERS
from tests.app.events.racing import HEAD, OPERATIONS, WAYS, Race, Slot, Tally, line
from tests.databases import KINDS, new_database
from tests.installation.builder import Installation, installed
from tests.installation.processes import web_server

ROUNDS = int(os.environ.get("ALMANAC_RACE_ROUNDS", "6"))
# How many clients want one slot at the same moment.
CLIENTS = 200
WORKERS = ("worker1", "worker2")
# The slots that are held, and the holds that are made, while another process reads.
SLOTS, HELD = 20, 500
# Seconds: the deadline of a fan-out, and what the start of everything may take.
DEADLINE, PATIENCE = 5, 300.0
# The rounds in which a worker is killed.
KILL_EVERY, FIRST_KILL = 10, 4

RACES = [OPERATIONS, *((each,) for each in OPERATIONS)]

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
@pytest.mark.parametrize("operations", RACES, ids="+".join)
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
@pytest.mark.parametrize("settle", WAYS)
def test_one_overlap_admits_two_holds_and_never_three(settle, provider, running, sandbox, unique, note):
    name = unique(f"two-{settle.__name__.replace('_', '-')}")
    contested = settle(running.installation, sandbox, provider, name)
    race = Race(running.installation, contested, running.urls, WORKERS, Random(name), overlaps=1)
    what = f"{settle.__name__}, hold with maxOverlaps=1, {provider}, {running.kind}"

    tally = race.run(what, ("hold",), ROUNDS, lambda _: False)

    note(tally)
    assert tally.holds_true, tally


def test_a_slot_over_two_calendars_is_taken_once(running, sandbox, unique):
    """Holds count both calendars of the profile, and events are created in the second one meanwhile."""
    installation, urls = running.installation, running.urls
    main = sandbox.account("google", "both@example.com")
    side = sandbox.account(
        "microsoft", "both@contoso.example", calendars=[{"primary": True}, {"id": "AAMk-side"}]
    )
    user = installation.user(unique("both"), main, side)
    of = {
        each["provider"]: each["id"] for each in installation.get(f"/users/{user}/connections").json()["data"]
    }
    counting = [
        {"connectionId": of["google"], "calendarId": "primary"},
        {"connectionId": of["microsoft"], "calendarId": "AAMk-side"},
    ]
    path = f"/users/{user}/availability"
    assert installation.call("PUT", path, json={"calendars": counting}).status_code == 200
    creating = f"/users/{user}/calendar/events/microsoft/AAMk-side?ifFree=true"

    def take(number: int, slot: Slot) -> tuple[str, int]:
        hold = number % 2 == 0
        body = {"users": [user], **slot.body} if hold else {"subject": "Side", **slot.body}
        url = f"{urls[number // 2 % 2]}/v1{'/holds' if hold else creating}"
        headers = {"Authorization": f"Bearer {installation.key}"}
        answer = requests.post(url, json=body, headers=headers, timeout=PATIENCE)
        assert answer.status_code in (201, 409, 429, 503), answer.text
        return "hold" if hold else "event", answer.status_code

    won = Counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        for number in range(ROUNDS):
            slot = Slot.of_round(number)
            outcomes = list(clients.map(take, range(CLIENTS), [slot] * CLIENTS))
            winners = [what for what, status in outcomes if status == 201]
            assert len(winners) <= 1, (slot, Counter(outcomes))
            won.update(winners)
    assert won.total() >= ROUNDS // 2, won


def test_holds_are_respected_by_warm_reads_of_another_process(running, sandbox, unique):
    installation, (_, other) = running.installation, running.urls
    users = [
        installation.user(unique("warm"), sandbox.account("google", f"warm{n}@example.com")) for n in range(3)
    ]
    slots = [Slot.of_round(n).body for n in range(SLOTS)]
    query = {"start": slots[0]["start"], "end": slots[-1]["end"], "slotDuration": "30"}
    promised: dict[str, tuple[str, str]] = {}
    over, wrong, reads = threading.Event(), [], Counter()

    def offered(url: str, user: str, session: requests.Session) -> set[str]:
        answer = session.get(f"{url}/v1/users/{user}/scheduling", params=query, timeout=30)
        assert answer.status_code == 200, answer.text
        return {each["start"][:19] for each in answer.json()["data"]["availableSlots"]}

    def read(url: str, number: int) -> None:
        chance = Random(number)
        with requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {installation.key}"
            while not over.is_set():
                user = chance.choice(users)
                before = {hold: start for hold, (whose, start) in promised.copy().items() if whose == user}
                found = offered(url, user, session)
                # The holds that lasted for the whole request.
                reads["concurrent"] += 1
                wrong.extend(start for hold, start in before.items() if hold in promised and start in found)

    readers = [threading.Thread(target=read, args=(other, n)) for n in range(3)]
    for reader in readers:
        reader.start()
    chance = Random(7)
    try:
        with requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {installation.key}"
            while reads["holds"] < HELD:
                user, n = chance.choice(users), chance.randrange(SLOTS)
                if len(promised) > 20 or chance.random() < 0.2:
                    hold = chance.choice([*promised, ""])
                    if promised.pop(hold, None):
                        assert installation.call("DELETE", f"/holds/{hold}").status_code == 200
                    continue
                answer = installation.call("POST", "/holds", json={"users": [user], **slots[n]})
                if answer.status_code == 201:
                    reads["holds"] += 1
                    start = slots[n]["start"][:19]
                    promised[answer.json()["data"]["id"]] = (user, start)
                    if start in offered(other, user, session):
                        wrong.append(start)
                else:
                    assert answer.json()["code"] == "slotTaken", answer.text
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert reads["concurrent"] > HELD
    assert wrong == []
