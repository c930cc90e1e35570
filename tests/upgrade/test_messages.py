"""Messages between processes are understood by the version before and the version after."""

from __future__ import annotations

import json
from copy import deepcopy

import msgspec
import pytest

from tests.upgrade import messages
from workers import jobs
from workers.celery_app import create_celery

RECORDED = json.loads(messages.FILE.read_text())


@pytest.fixture(scope="module")
def now(settings):
    with create_celery(settings) as celery:
        celery.loader.import_default_modules()
        yield messages.current(celery)


def test_the_messages_of_the_last_release_are_understood(now):
    assert list(messages.faults(RECORDED, now)) == []


def test_the_messages_are_those_of_the_code(now):
    assert {"reads.drain", "webhooks.deliver"} <= set(now["tasks"])
    packed = now["messages"]["workers.fanout.codec.Packed"]
    assert packed["array"]
    assert [each["name"] for each in packed["fields"]] == ["number", "job"]
    assert [each["default"] for each in packed["fields"]] == [False, False]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda made: made["tasks"].remove("reads.drain"), "reads.drain is gone from the tasks"),
        (lambda made: made["messages"].pop("workers.jobs.ReadBusy"), "ReadBusy is gone"),
        (lambda made: _fields(made, "jobs.ReadBusy").pop(0), "ReadBusy.connection is gone"),
        (lambda made: _fields(made, "codec.Packed").reverse(), "in another order"),
        (
            lambda made: _fields(made, "jobs.ReadBusy").append({"name": "more", "default": False}),
            "ReadBusy.more is new and has no default",
        ),
    ],
    ids=["task", "message", "field", "order", "default"],
)
def test_a_change_that_breaks_the_other_version_is_named(change, fault):
    changed = deepcopy(RECORDED)
    change(changed)

    found = list(messages.faults(RECORDED, changed))

    assert len(found) == 1
    assert fault in found[0]


def test_a_field_with_a_default_may_be_added():
    changed = deepcopy(RECORDED)
    _fields(changed, "jobs.ReadBusy").append({"name": "more", "default": True})

    assert list(messages.faults(RECORDED, changed)) == []


@pytest.mark.parametrize("form", [msgspec.json, msgspec.msgpack])
def test_a_field_of_a_later_version_is_ignored(form):
    """In a map, and at the end of an array."""

    class Later(jobs.ReadBusy, frozen=True, tag="ReadBusy"):
        more: int = 0

    class LaterGrant(jobs.GrantRef, frozen=True, array_like=True):
        more: int = 0

    job = Later("c", None, 1, 2, LaterGrant("g", "google", 7), more=7)

    assert form.decode(form.encode(job), type=jobs.Job) == jobs.ReadBusy(
        "c", None, 1, 2, jobs.GrantRef("g", "google")
    )


def _fields(made, name):
    (found,) = [each for key, each in made["messages"].items() if key.endswith(name)]
    return found["fields"]
