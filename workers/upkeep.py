"""What is done on the clock, for nobody in particular."""

from __future__ import annotations

import logging
import time
from datetime import datetime

from providers.base import Token
from providers.errors import ProviderError
from store.crypto import Undecipherable
from store.models import OAuthConnection
from store.queries import connections
from workers.accounts import minding_the_grant, open_account
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# What is left over comes with the next round.
MOST_RENEWALS = 500
SECONDS_FOR_EACH = 10.0


def renew_tokens(runtime: Runtime, *, before: datetime) -> int:
    """Refresh the access tokens that end before ``before``; returns how many were renewed."""
    with runtime.stores.database.reading() as session:
        ids = connections.expiring(session, before=before, limit=MOST_RENEWALS)
        rows = connections.sealed(session, ids)
    return sum(_renew(runtime, row) for row in rows.values())


def _renew(runtime: Runtime, row: OAuthConnection) -> bool:
    deadline = time.monotonic() + SECONDS_FOR_EACH
    try:
        credentials = connections.open_credentials(row, runtime.stores.keyring)
        _, account = open_account(runtime, credentials)
        with minding_the_grant(runtime, row.id):
            account.tokens.renewed(Token(credentials.tokens.access_token), deadline=deadline)
    except ProviderError:
        # Logged where it happened; a grant that is gone is marked, anything else is tried next time.
        return False
    except Undecipherable:
        log.exception("tokens cannot be opened", extra={"connection": row.id})
        return False
    return True
