"""Tests the grant of an organization, or an OAuth registration, with its provider before it is saved."""

from __future__ import annotations

import logging

from providers import registry
from providers.base import Failed
from providers.definition import required
from providers.errors import ClientRefused, GrantRefused, ProviderError, Reason, SubjectRefused
from providers.oauth.registration_probe import Finding
from store.security.one_time_secrets import RegistrationTrial
from store.sql.queries.provider_clients import StoredClient
from workers.jobs import CheckGrant, CheckRegistration, GrantCheck, Reply
from workers.runtime import Runtime

log = logging.getLogger(__name__)

LOST = Failed(Reason.PROVIDER_ERROR, "The grant was lost on the way to a worker; send it again")


def check_grant(runtime: Runtime, job: CheckGrant, deadline: float) -> Reply:
    """Request a token by the grant that is stored under ``job.secret_name``."""
    trial = runtime.stores.grant_trials.take(job.secret_name)
    if trial is None:
        return Reply(failed=LOST)
    try:
        grants = required(runtime.provider(trial.provider).grants, registry.title(trial.provider))
        grant = grants.token(trial, trial.subject, deadline=deadline)
    except (GrantRefused, SubjectRefused) as error:
        log.info("organization grant refused on check: %s: %s", trial.provider, error.message)
        return Reply(checked=_refused(error))
    except ProviderError as error:
        return Reply(failed=Failed.from_error(error))
    return Reply(checked=GrantCheck(scope=grant.scope))


def _refused(error: GrantRefused | SubjectRefused) -> GrantCheck:
    if isinstance(error, SubjectRefused):
        return GrantCheck(refused="subject", message=error.message)
    if isinstance(error, ClientRefused):
        return GrantCheck(refused="client", message=error.message)
    return GrantCheck(refused="grant", message=error.message)


def check_registration(runtime: Runtime, job: CheckRegistration, deadline: float) -> Reply:
    """Test the registration that is stored under ``job.secret_name``; no finding if it has expired."""
    trial = runtime.stores.registration_trials.take(job.secret_name)
    if trial is None:
        return Reply()
    finding = _probe(runtime, trial, deadline)
    log.info("registration checked: %s is %s", trial.provider, finding.verdict)
    return Reply(finding=finding)


def _probe(runtime: Runtime, trial: RegistrationTrial, deadline: float) -> Finding:
    client = StoredClient(trial.client_id, trial.secret, trial.tenant)
    tried = runtime.registrations.with_client(trial.provider, client)
    return required(tried.oauth, registry.title(trial.provider)).check(trial.redirect_uri, deadline=deadline)
