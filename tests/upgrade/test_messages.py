"""Messages between processes are understood by the version before and the version after."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.upgrade import messages
from workers import jobs
from workers.process import create_worker

RECORDED = json.loads(messages.FILE.read_text())


@pytest.fixture(scope="module")
def now(settings):
    with create_worker(settings) as celery:
        celery.loader.import_default_modules()
        yield messages.current(celery)


def test_the_messages_of_the_last_release_are_understood(now):
    assert list(messages.faults(RECORDED, now)) == []


def test_the_messages_are_those_of_the_code(now):
    assert {"reads.drain", "webhooks.deliver"} <= set(now["tasks"])
    packed = now["messages"]["workers.fanout.codec.Packed"]
    assert packed["array"]
    assert [each["name"] for each in packed["fields"]] == ["number", "job", "flight"]
    assert [each["default"] for each in packed["fields"]] == [False, False, True]


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
