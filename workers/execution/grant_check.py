"""Tests the grant of an organization with its provider before it is saved."""

from __future__ import annotations

import logging

from providers.base import Failed, IssuedTokens
from providers.errors import ClientRefused, GrantRefused, ProviderError, Reason, SubjectRefused
from providers.names import ProviderName
from store.security.grant_trials import GrantTrial
from workers.execution import token_requests
from workers.fanout.jobs import CheckGrant, GrantCheck, Reply
from workers.runtime import Runtime

log = logging.getLogger(__name__)

LOST = Failed(Reason.PROVIDER_ERROR, "The grant was lost on the way to a worker; send it again")


def check(runtime: Runtime, job: CheckGrant, deadline: float) -> Reply:
    """Request a token by the grant that is stored under the job's id."""
    proposal = runtime.stores.grant_trials.take(job.proposal)
    if proposal is None:
        return Reply(failed=LOST)
    try:
        grant = _token(runtime, proposal, deadline)
    except (GrantRefused, SubjectRefused) as error:
        log.info("organization grant refused on check: %s: %s", proposal.provider, error.message)
        return Reply(checked=_refused(error))
    except ProviderError as error:
        return Reply(failed=Failed.from_error(error))
    return Reply(checked=GrantCheck(scope=grant.scope))


def _token(runtime: Runtime, proposal: GrantTrial, deadline: float) -> IssuedTokens:
    if proposal.provider == ProviderName.GOOGLE:
        return token_requests.by_service_account(
            runtime, proposal.secret or "", proposal.subject or "", proposal.scope, deadline=deadline
        )
    return token_requests.by_application(
        runtime, proposal.tenant or "", proposal.client_id, proposal.secret, deadline=deadline
    )


def _refused(error: GrantRefused | SubjectRefused) -> GrantCheck:
    if isinstance(error, SubjectRefused):
        return GrantCheck(refused="subject", message=error.message)
    if isinstance(error, ClientRefused):
        return GrantCheck(refused="client", message=error.message)
    return GrantCheck(refused="grant", message=error.message)
