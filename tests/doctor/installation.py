"""An installation with a separate Redis, on which tests run the doctor with changed settings."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from click.testing import Result

from app.cli.doctor import CHECKS, Diagnosis
from app.cli.doctor.diagnosis import Examination
from store.config.settings import Settings, new_secrets
from tests.app.cli.test_commands import almanac
from tests.conftest import settings_of
from tests.http_server import Handler, serving
from tests.installation.processes import Process, running_worker
from workers.queues import Queue


class Installation:
    """An installation with a separate Redis and worker; ``doctor`` runs with changed settings."""

    def __init__(self, environment: dict[str, str], redis: Process) -> None:
        self.environment = {name: value for name, value in environment.items() if name.startswith("ALMANAC_")}
        self.whole = environment
        self.settings = settings_of(environment)
        self.redis = redis

    def doctor(self, *arguments: str, **changed: str) -> Result:
        settings = self.environment | {f"ALMANAC_{name}": value for name, value in changed.items()}
        folder = Path(settings.pop("ALMANAC_DATA_DIR"))
        return almanac("doctor", *arguments, data=folder, **settings)

    def found(self, **changed: str) -> dict[str, dict[str, str]]:
        result = self.doctor("--json", **changed)
        document = json.loads(result.stdout)
        assert document["healthy"] == (result.exit_code == 0), result.output
        return {each["name"]: each for each in document["checks"]}

    @contextmanager
    def worker(self, *queues: Queue) -> Iterator[None]:
        with running_worker(self.settings, self.whole, "doctored", queues=queues or tuple(Queue)):
            yield


@contextmanager
def answering(
    body: bytes = b'{"status":"ok"}', status: int = 200, tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """A server on this machine with the same answer for every request."""

    class SameAnswer(Handler):
        def do_GET(self) -> None:
            self.reply(status, body)

    with serving(SameAnswer, tls) as url:
        yield url


def production() -> dict[str, str]:
    secret, encryption = new_secrets()
    return {"SECRET_KEY": secret, "ENCRYPTION_KEYS": encryption}


def run_check(examination: Examination, name: str) -> Diagnosis:
    (check,) = [check for check in CHECKS if check.name == name]
    return examination.run(replace(check, needs=()))


def check_with(settings: Settings, name: str) -> Diagnosis:
    with Examination(settings) as examination:
        return run_check(examination, name)
