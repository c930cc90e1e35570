"""Tries a registration with its provider before it is saved."""

from __future__ import annotations

import logging

from providers.checks import Finding
from providers.names import ProviderName
from store.proposals import Proposal
from store.queries.provider_clients import StoredClient
from workers.jobs import CheckRegistration, Reply
from workers.runtime import Runtime

log = logging.getLogger(__name__)


def check(runtime: Runtime, job: CheckRegistration, deadline: float) -> Reply:
    """Ask the provider about the registration that waits under the job's id; no finding when none does."""
    proposal = runtime.stores.proposals.receive(job.proposal)
    if proposal is None:
        return Reply()
    finding = _ask_the_provider(runtime, proposal, deadline)
    log.info("a registration with %s is %s", proposal.provider, finding.verdict)
    return Reply(finding=finding)


def _ask_the_provider(runtime: Runtime, proposal: Proposal, deadline: float) -> Finding:
    client = StoredClient(proposal.client_id, proposal.secret, proposal.tenant)
    oauth = runtime.registered.oauth(ProviderName(proposal.provider), client)
    return oauth.check(proposal.redirect_uri, deadline=deadline)
