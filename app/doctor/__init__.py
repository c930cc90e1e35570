"""Looks at a whole installation, part by part, and says what is wrong and how to mend it."""

from __future__ import annotations

from collections.abc import Iterator

from app.doctor import crew, outside, stored
from app.doctor.diagnosis import Check, Diagnosis, Patient, State
from store.settings import Settings

__all__ = ["Diagnosis", "State", "examine"]

CHECKS = (
    Check("database", stored.database),
    Check("redis", stored.redis),
    Check("redis memory", stored.memory, needs=("redis",)),
    Check("redis persistence", stored.persistence, needs=("redis",)),
    Check("encryption keys", stored.encryption_keys, needs=("database",)),
    Check("clock", stored.clock, needs=("database", "redis")),
    Check("broker", crew.broker),
    Check("workers", crew.workers, needs=("broker",)),
    Check("provider access", crew.provider_access, needs=("redis",)),
    Check("beat", crew.beat, needs=("redis",)),
    Check("google", outside.google, needs=("database", "redis", "broker", "workers")),
    Check("microsoft", outside.microsoft, needs=("database", "redis", "broker", "workers")),
    Check("public URL", outside.public_url),
    Check("proxies", outside.proxies),
)


def examine(settings: Settings) -> Iterator[Diagnosis]:
    """One diagnosis for each check, as soon as it is made."""
    with Patient(settings) as patient:
        for check in CHECKS:
            yield patient.look(check)
