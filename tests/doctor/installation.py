"""An installation with a separate Redis, on which tests run the doctor with changed settings."""

from __future__ import annotations

import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from click.testing import Result

from app.cli.doctor import CHECKS, Diagnosis
from app.cli.doctor.diagnosis import Examination
from app.server import commands
from store.config.settings import Settings, new_secrets
from tests.app.cli.test_commands import almanac
from tests.conftest import START_SECONDS, STOP_SECONDS, settings_of
from tests.http_server import Handler, serving
from workers.celery_app import create_celery
from workers.queues import Queue


class Installation:
    """An installation with a separate Redis and worker; ``doctor`` runs with changed settings."""

    def __init__(self, environment: dict[str, str], redis: subprocess.Popen[bytes]) -> None:
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
        command = commands.worker(self.settings, "doctored", queues or tuple(Queue))
        with subprocess.Popen(command, env=self.whole) as process:
            celery = create_celery(self.settings)
            give_up = time.monotonic() + START_SECONDS
            while not celery.control.ping(timeout=0.5, limit=1):
                assert process.poll() is None, "the worker ended by itself"
                assert time.monotonic() < give_up, "the worker does not answer"
            yield
            process.terminate()
            process.wait(timeout=STOP_SECONDS)


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
