"""Tests an OAuth registration with its provider before it is saved."""

from __future__ import annotations

import logging

from providers.names import ProviderName
from providers.oauth.registration_probe import Finding
from store.security.registration_trials import RegistrationTrial
from store.sql.queries.provider_clients import StoredClient
from workers.fanout.jobs import CheckRegistration, Reply
from workers.runtime import Runtime

log = logging.getLogger(__name__)


def check(runtime: Runtime, job: CheckRegistration, deadline: float) -> Reply:
    """Test the registration that is stored under the job's id; no finding if it has expired."""
    proposal = runtime.stores.registration_trials.take(job.proposal)
    if proposal is None:
        return Reply()
    finding = _ask_the_provider(runtime, proposal, deadline)
    log.info("registration checked: %s is %s", proposal.provider, finding.verdict)
    return Reply(finding=finding)


def _ask_the_provider(runtime: Runtime, proposal: RegistrationTrial, deadline: float) -> Finding:
    client = StoredClient(proposal.client_id, proposal.secret, proposal.tenant)
    oauth = runtime.registrations.oauth(ProviderName(proposal.provider), client)
    return oauth.check(proposal.redirect_uri, deadline=deadline)
