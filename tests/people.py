"""People whose accounts are connected, put into the store: over HTTP it takes five times as long."""

from __future__ import annotations

from sqlalchemy.orm import Session

from providers.sandbox.client import SandboxAccount
from store.crypto import Keyring
from store.models import User
from store.queries import connections
from store.queries.connections import Tokens


def connected(
    session: Session, keyring: Keyring, custom_id: str, *accounts: SandboxAccount, obtained: bool = False
) -> User:
    """A new user with these accounts, which are of the sandbox; ``obtained``: by our own consent flow."""
    user = User(custom_id=custom_id)
    session.add(user)
    session.flush()
    for account in accounts:
        connections.replace(
            session,
            keyring,
            user_id=user.id,
            provider=account.provider,
            email=account.email,
            scope=account.scope.split(),
            tokens=Tokens(account.access_token, account.refresh_token, account.expires_at),
            obtained=obtained,
        )
    return user
