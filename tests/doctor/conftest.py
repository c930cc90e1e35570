"""Fixtures: an installation whose parts tests break, and the doctor's examination of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.cli.doctor.diagnosis import Examination
from store.stores import Stores
from tests.conftest import settings_of
from tests.doctor.installation import Installation, answering
from tests.installation.processes import running_redis


@pytest.fixture(scope="module")
def installation(environment: dict[str, str], tmp_path_factory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("doctor")
    with answering() as url:
        ours = environment | {"ALMANAC_DATA_DIR": str(folder), "ALMANAC_PUBLIC_URL": url}
        with running_redis(folder, settings_of(ours).redis_socket) as redis:
            made = Installation(ours, redis)
            with Stores(made.settings) as stores:
                stores.database.upgrade()
            yield made


@pytest.fixture
def stores(installation: Installation) -> Iterator[Stores]:
    with Stores(installation.settings) as stores:
        stores.heartbeats.record_beat()
        yield stores
        for name, value in (("maxmemory", "0"), ("maxmemory-policy", "noeviction"), ("save", "")):
            stores.redis.config_set(name, value)


@pytest.fixture
def examination(installation: Installation, stores: Stores) -> Iterator[Examination]:
    with Examination(installation.settings) as examination:
        yield examination
