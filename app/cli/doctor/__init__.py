"""Diagnoses an installation, part by part: reports faults and how to fix them."""

from __future__ import annotations

from collections.abc import Iterator

from app.cli.doctor import external, storage, workers
from app.cli.doctor.diagnosis import Check, CheckState, Diagnosis, Examination
from providers import registry
from store.config.settings import Settings

__all__ = ["CheckState", "Diagnosis", "examine"]

CHECKS = (
    Check("database", storage.database),
    Check("redis", storage.redis),
    Check("database connections", storage.connections, needs=("database", "redis")),
    Check("redis memory", storage.memory, needs=("redis",)),
    Check("redis persistence", storage.persistence, needs=("redis",)),
    Check("encryption keys", storage.encryption_keys, needs=("database",)),
    Check("clock", storage.clock, needs=("database", "redis")),
    Check("broker", workers.broker),
    Check("workers", workers.workers, needs=("broker",)),
    Check("provider access", workers.provider_access, needs=("redis", "workers")),
    Check("beat", workers.beat, needs=("redis",)),
    *(
        Check(name, external.registration(name), needs=("database", "redis", "broker", "workers"))
        for name in registry.with_consent()
    ),
    Check("grants", external.grants, needs=("database",)),
    Check("accounts", external.accounts, needs=("redis",)),
    Check("identity provider", external.identity_provider, needs=("redis", "broker", "workers")),
    Check("public URL", external.public_url),
    Check("proxies", external.proxies),
)


def examine(settings: Settings) -> Iterator[Diagnosis]:
    """Run the checks in order; yields each diagnosis as soon as it is made."""
    with Examination(settings) as examination:
        for check in CHECKS:
            yield examination.run(check)
