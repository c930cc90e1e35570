"""Creates administrators outside the dashboard: by a one-time link, or on the command line."""

from __future__ import annotations

import logging

from redis.exceptions import RedisError

from app.dashboard.sign_in import login_throttle, passwords
from app.dashboard.sign_in.pages import NewAdministratorForm
from store.sql.models import Role
from store.sql.queries import administrators, audit, identities
from store.sql.queries.audit import COMMAND_LINE
from store.stores import Stores

log = logging.getLogger(__name__)


def link(stores: Stores, otherwise: str, *, at: str | None = None, role: Role = Role.ADMINISTRATOR) -> str:
    """A new one-time link, at the base URL ``at``, else that of the settings, else ``otherwise``."""
    with stores.database.writing() as session:
        secret = administrators.invite(session, role)
        audit.record(
            session,
            actor=COMMAND_LINE,
            action="inviteAdministrator",
            subject="by a link",
            changes={"role": (None, role)},
        )
    address = (at or stores.settings.public_url or otherwise).rstrip("/")
    return f"{address}/dashboard/welcome/{secret}"


def first_link(stores: Stores, otherwise: str) -> str | None:
    """The link for the first administrator; None if there is one already, or passwords are turned off."""
    if not stores.settings.password_sign_in:
        return None
    with stores.database.reading() as session:
        if administrators.count(session):
            return None
    return link(stores, otherwise)


def create(stores: Stores, name: str, password: str, role: Role | None = None) -> bool:
    """Create a person, or change the password of an existing one; returns whether it is new.

    Without a ``role``, a new person is an administrator, and an existing one keeps the role. A changed
    password ends all sessions, withdraws the links of that person, and resets the login throttle for the name
    and for all addresses.

    :raise ValueError: with the error in the name or the password, or for a person without a password
    :raise LastAdministrator: when the last administrator would have another role
    """
    if faults := NewAdministratorForm(only=("name",)).validate({"name": name}):
        raise ValueError(f"The name {faults['name'][0]}")
    if fault := passwords.fault(password):
        raise ValueError(f"The password {fault}")
    hashed = passwords.hashed(password)
    with stores.database.writing() as session:
        found = administrators.find(session, name)
        if found is not None and identities.load(session, found.id) is not None:
            raise ValueError(f"{name} signs in by OpenID Connect and can have no password: use another name")
        old_role = None if found is None else found.role
        new_role = role or old_role or Role.ADMINISTRATOR
        if found is None:
            administrators.create(session, name=name, password_hash=hashed, role=Role(new_role))
        else:
            administrators.change_role(session, found.id, Role(new_role))
            administrators.change_password(session, found.id, hashed)
        action = "createAdministrator" if found is None else "changePassword"
        changes = {"role": (old_role, new_role)}
        audit.record(session, actor=COMMAND_LINE, action=action, subject=name, changes=changes)
    if found is not None:
        _reset_throttle(stores, name)
    return found is None


def _reset_throttle(stores: Stores, name: str) -> None:
    """Allow logins with the name again, after failed attempts."""
    try:
        login_throttle.forget_everywhere(stores, name)
    except RedisError as error:
        log.warning("login throttle not reset for that name: %s", type(error).__name__)
