"""How administrators come to be outside the dashboard: by a one-time link, or on the command line."""

from __future__ import annotations

import logging

from redis.exceptions import RedisError

from app.dashboard.sign_in import login_throttle, passwords
from app.dashboard.sign_in.pages import NewAdministratorForm
from store.sql.queries import administrators, audit, dashboard_sessions
from store.sql.queries.audit import COMMAND_LINE
from store.stores import Stores

log = logging.getLogger(__name__)


def link(stores: Stores, otherwise: str, *, at: str | None = None) -> str:
    """A new one-time link: ``at`` an address, else at that of the settings, else ``otherwise``."""
    with stores.database.writing() as session:
        secret = administrators.invite(session)
        audit.record(session, actor=COMMAND_LINE, action="inviteAdministrator", subject="by a link")
    address = (at or stores.settings.public_url or otherwise).rstrip("/")
    return f"{address}/dashboard/welcome/{secret}"


def first_link(stores: Stores, otherwise: str) -> str | None:
    """The link for the very first administrator; None once there is one."""
    with stores.database.reading() as session:
        if administrators.count(session):
            return None
    return link(stores, otherwise)


def create(stores: Stores, name: str, password: str) -> bool:
    """Create an administrator, or give the one of that name another password; whether it is a new one.

    With another password, every browser is signed out, open invitations are withdrawn, and what failed with
    the name or from any address is forgotten.

    :raise ValueError: saying what is wrong with the name or the password
    """
    if faults := NewAdministratorForm(only=("name",)).validate({"name": name}):
        raise ValueError(f"The name {faults['name'][0]}")
    if fault := passwords.fault(password):
        raise ValueError(f"The password {fault}")
    hashed = passwords.hashed(password)
    with stores.database.writing() as session:
        found = administrators.find(session, name)
        if found is None:
            administrators.create(session, name=name, password_hash=hashed)
        else:
            administrators.renew_password(session, found.id, hashed)
            dashboard_sessions.end_others(session, found.id, but=None)
        action = "createAdministrator" if found is None else "changePassword"
        audit.record(session, actor=COMMAND_LINE, action=action, subject=name)
    if found is not None:
        _forgive(stores, name)
    return found is None


def _forgive(stores: Stores, name: str) -> None:
    """Hear the name again, though others may have guessed."""
    try:
        login_throttle.forget_everywhere(stores, name)
    except RedisError as error:
        log.warning("what failed with that name is not forgotten: %s", type(error).__name__)
