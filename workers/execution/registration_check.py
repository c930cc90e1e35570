"""Tests an OAuth registration with its provider before it is saved."""

from __future__ import annotations

import logging

from providers.names import ProviderName
from providers.oauth.registration_probe import Finding
from store.security.one_time_secrets import RegistrationTrial
from store.sql.queries.provider_clients import StoredClient
from workers.jobs import CheckRegistration, Reply
from workers.runtime import Runtime

log = logging.getLogger(__name__)


def check(runtime: Runtime, job: CheckRegistration, deadline: float) -> Reply:
    """Test the registration that is stored under ``job.secret_name``; no finding if it has expired."""
    trial = runtime.stores.registration_trials.take(job.secret_name)
    if trial is None:
        return Reply()
    finding = _probe(runtime, trial, deadline)
    log.info("registration checked: %s is %s", trial.provider, finding.verdict)
    return Reply(finding=finding)


def _probe(runtime: Runtime, trial: RegistrationTrial, deadline: float) -> Finding:
    client = StoredClient(trial.client_id, trial.secret, trial.tenant)
    oauth = runtime.registrations.oauth(ProviderName(trial.provider), client)
    return oauth.check(trial.redirect_uri, deadline=deadline)
