"""Asks the identity provider whether the people who sign in by it are still there, and with which role.

Sessions and links of a person end when the provider no longer accepts the refresh token, or when the person
has no role any more. A provider that does not answer ends them after ``ALMANAC_OIDC_CONFIRMED_SECONDS``.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from providers.base import Token
from providers.errors import GrantGone, ProviderError
from providers.openid.client import IdentityProvider
from store.security.crypto import Undecipherable
from store.sql.models import Identity, now
from store.sql.queries import administrators, identities
from workers.execution import sign_ins
from workers.runtime import Runtime
from workers.upkeep.batches import SECONDS_FOR_EACH, Batch, one_at_a_time

log = logging.getLogger(__name__)


# A refresh token may be valid once.
@one_at_a_time("check_identities")
def check(runtime: Runtime, *, deadline: float) -> int:
    """Check the identities that are due; returns how many the provider has confirmed.

    Ends by ``deadline``, on ``time.monotonic()``.
    """
    provider = runtime.identity_provider
    if provider is None:
        return 0
    before = now() - timedelta(seconds=runtime.settings.oidc_check_seconds)
    with runtime.stores.database.reading() as session:
        due = identities.due(session, runtime.settings.oidc_issuer, before=before)
    return Batch(runtime, due, lambda each: _check(runtime, provider, each), deadline).run()


def _check(runtime: Runtime, provider: IdentityProvider, identity: Identity) -> bool:
    person = {"administrator": identity.administrator_id}
    deadline = time.monotonic() + SECONDS_FOR_EACH
    try:
        token = identities.refresh_token(identity, runtime.stores.keyring)
        asserted = provider.check(identity.subject, Token(token), deadline=deadline)
    except GrantGone:
        log.warning("the identity provider no longer confirms a person", extra=person)
        _end(runtime, identity, "the provider no longer confirms the account")
        return False
    except ProviderError as error:
        # The next run asks again, until the time of the last confirmation has passed.
        log.warning("an identity could not be checked: %s", error.message, extra=person)
        return False
    except Undecipherable:
        log.exception("the refresh token of an identity cannot be decrypted", extra=person)
        return False
    if asserted.names_roles and not _apply_role(runtime, identity, asserted.claims):
        return False
    sign_ins.confirmed(runtime, identity.administrator_id, asserted, token)
    return True


def _apply_role(runtime: Runtime, identity: Identity, claims: dict[str, object]) -> bool:
    """Give the person the role that the provider states; whether there is one."""
    role = sign_ins.role_of(claims, runtime)
    if role is None:
        _end(runtime, identity, "no role")
        return False
    with runtime.stores.database.writing() as session:
        person = administrators.load(session, identity.administrator_id)
        if person is not None:
            identities.change_role(session, person, role)
    return True


def _end(runtime: Runtime, identity: Identity, because: str) -> None:
    with runtime.stores.database.writing() as session:
        # A sign-in meanwhile has stored another refresh token: the identity is confirmed.
        stored = identities.load(session, identity.administrator_id)
        if stored is not None and stored.sealed_refresh_token == identity.sealed_refresh_token:
            identities.end(session, identity.administrator_id, because=because)
