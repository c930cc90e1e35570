"""Looks at a whole installation, part by part, and says what is wrong and how to mend it."""

from __future__ import annotations

from collections.abc import Iterator

from app.cli.doctor import external, storage, workers
from app.cli.doctor.diagnosis import Check, Diagnosis, Patient, State
from store.config.settings import Settings

__all__ = ["Diagnosis", "State", "examine"]

CHECKS = (
    Check("database", storage.database),
    Check("redis", storage.redis),
    Check("redis memory", storage.memory, needs=("redis",)),
    Check("redis persistence", storage.persistence, needs=("redis",)),
    Check("encryption keys", storage.encryption_keys, needs=("database",)),
    Check("clock", storage.clock, needs=("database", "redis")),
    Check("broker", workers.broker),
    Check("workers", workers.workers, needs=("broker",)),
    Check("provider access", workers.provider_access, needs=("redis",)),
    Check("beat", workers.beat, needs=("redis",)),
    Check("google", external.google, needs=("database", "redis", "broker", "workers")),
    Check("microsoft", external.microsoft, needs=("database", "redis", "broker", "workers")),
    Check("public URL", external.public_url),
    Check("proxies", external.proxies),
)


def examine(settings: Settings) -> Iterator[Diagnosis]:
    """One diagnosis for each check, as soon as it is made."""
    with Patient(settings) as patient:
        for check in CHECKS:
            yield patient.look(check)
