"""Checks of the broker, the workers and beat."""

from __future__ import annotations

from app.cli.doctor.diagnosis import SECONDS, CheckResult, CheckState, Examination
from providers import registry
from workers import broker as broker_health
from workers.queues import Queue

# A worker on the same network answers within milliseconds, a busy one within a second.
WORKERS_SECONDS = 2.0


def broker(examination: Examination) -> CheckResult:
    """The broker accepts connections."""
    kind = broker_health.transport(examination.settings, seconds=SECONDS)
    return CheckState.OK, f"The broker answers ({kind})", ""


def workers(examination: Examination) -> CheckResult:
    """Every queue has a worker."""
    queues = broker_health.queues_by_worker(examination.services.celery, seconds=WORKERS_SECONDS)
    if not queues:
        return CheckState.WRONG, "No worker answers", "Start one with almanac worker"
    missing = sorted(set(Queue) - set().union(*queues.values()))
    if missing:
        return (
            CheckState.WRONG,
            f"No worker takes the {'queue' if len(missing) == 1 else 'queues'} {', '.join(missing)}",
            "Start almanac worker, which takes all of them",
        )
    return CheckState.OK, f"{', '.join(sorted(queues))} take every queue", ""


def provider_access(examination: Examination) -> CheckResult:
    """Every worker reaches the providers, according to its heartbeat."""
    present = examination.services.stores.heartbeats.live_processes()
    unreachable = [
        f"{worker} cannot reach {' and '.join(registry.service(each) for each in sorted(providers))}"
        for worker, providers in sorted(present.unreachable.items())
        if providers
    ]
    if unreachable:
        return (
            CheckState.WRONG,
            "; ".join(unreachable),
            "Check the network, the DNS and the firewall of its host; while other workers reach the "
            "provider, they do its work",
        )
    return CheckState.OK, "No worker reports a provider that it cannot reach", ""


def beat(examination: Examination) -> CheckResult:
    """Beat has ticked recently."""
    present = examination.services.stores.heartbeats.live_processes()
    advice = "Start exactly one almanac beat: it renews tokens and push channels, and retries webhooks"
    if present.beat_seconds is None:
        return CheckState.WRONG, "Beat has never ticked", advice
    if not present.beat_is_alive:
        return CheckState.WRONG, f"Beat has not ticked for {present.beat_seconds:.0f} seconds", advice
    return CheckState.OK, f"Beat has ticked {present.beat_seconds:.0f} seconds ago", ""
