"""Users with connected accounts, written into the store: over HTTP it takes five times as long."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from providers.sandbox.client import SandboxAccount, SandboxDomain
from store.security.crypto import Keyring
from store.sql.models import OAuthConnection, Role, User
from store.sql.queries import administrators, connections
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.connections import ReplacedConnection
from store.sql.queries.issuers import Issuer

# An account that no provider has; its tokens do not expire.
INVENTED = SandboxAccount(
    "google",
    "nobody@example.com",
    access_token="planted-access",
    refresh_token="planted-refresh",
    expires_at=None,  # type: ignore[arg-type]
    scope="https://www.googleapis.com/auth/calendar",
)


def identify(session: Session, connection: str, account: SandboxAccount) -> None:
    """Store the provider's name of the main calendar, which a worker learns with its first call."""
    if account.main_calendar_id is not None:
        google = account.provider == "google"
        address = account.main_calendar_id if google else account.email
        connections.identify(
            session, connection, main_calendar_id=account.main_calendar_id, mailbox=address.lower()
        )


def posted(account: SandboxAccount) -> dict[str, Any]:
    """The body of the request that connects an account by its tokens."""
    return {
        "accessToken": account.access_token,
        "refreshToken": account.refresh_token,
        "email": account.email,
        "expiresAt": account.expires_at.isoformat(),
        "scope": account.scope.split(),
    }


def add_user(session: Session, custom_id: str) -> User:
    """A new user without connections."""
    user = User(custom_id=custom_id)
    session.add(user)
    session.flush()
    return user


def add_operator(session: Session, name: str) -> Issuer:
    """A new person who may invite users, as the issuer of links. The password opens no session."""
    row = administrators.create(session, name=name, password_hash="nobody's", role=Role.OPERATOR)
    return Issuer(administrator_id=row.id, security_stamp=row.security_stamp)


def add_connection(
    session: Session, keyring: Keyring, user: User, connected: SandboxAccount = INVENTED, **changed: Any
) -> OAuthConnection:
    """Connect an account to a user; ``changed`` are arguments of ``connections.replace``."""
    arguments: dict[str, Any] = {
        "provider": connected.provider,
        "email": connected.email,
        "scope": connected.scope.split(),
        "tokens": Tokens(connected.access_token, connected.refresh_token, connected.expires_at),
    }
    row, _ = connections.replace(session, keyring, user_id=user.id, **(arguments | changed))
    return row


def connected(
    session: Session,
    keyring: Keyring,
    custom_id: str,
    *accounts: SandboxAccount,
    obtained: bool = False,
    identified: bool = True,
) -> User:
    """A new user with these accounts, which are of the sandbox.

    ``obtained``: by our own consent flow. ``identified``: their main calendars are known, as they are after
    the first read.
    """
    user = add_user(session, custom_id)
    for account in accounts:
        row = add_connection(
            session, keyring, user, account, obtained=obtained, account=ReplacedConnection.ADD
        )
        if identified:
            identify(session, row.id, account)
    return user


def grant_of(domain: SandboxDomain) -> dict[str, Any]:
    """The body of a request that stores the grant of a domain."""
    if domain.provider == "google":
        return {"serviceAccountKey": domain.service_account_key, "subject": domain.subject}
    return {"tenant": domain.tenant, "clientId": domain.client_id, "clientSecret": domain.client_secret}
