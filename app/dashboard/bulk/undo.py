"""Undoing the removal of members: a removal is kept, encrypted, for a few minutes."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from flask import request
from flask.typing import ResponseReturnValue

from app.accounts import delegations, organizations
from app.accounts.delegations import Member
from app.accounts.disconnect import clean_up
from app.dashboard.blueprint import blp, done, failed, warned
from app.dashboard.sign_in import sessions
from app.http.authentication import caller
from app.http.errors import ApiError
from app.http.route_facts import route_facts
from app.services import services
from store.security.one_time_secrets import OneTimeSecrets
from store.sql.models import Role
from store.sql.queries import audit, users

MINUTES = 15


@dataclass(frozen=True, slots=True)
class Removal:
    """Removed members; ``delegated`` has provider, user and address of their delegated connections."""

    slug: str
    user_ids: list[str]
    delegated: list[tuple[str, str, str]]


def remember(removal: Removal) -> str:
    """Keep a removal; returns the token that undoes it once."""
    token = secrets.token_urlsafe(16)
    _kept().put(_key(token), removal, MINUTES * 60)
    return token


@blp.post("/organizations/<slug>/members/undo")
@route_facts(role=Role.OPERATOR)
def undo_removal(slug: str) -> ResponseReturnValue:
    """Make the members that were removed members again, with their delegated connections."""
    removal = _kept().take(_key(request.form.get("token", "")), Removal)
    if removal is None or removal.slug != slug:
        return failed(
            f"This can be undone once, for {MINUTES} minutes. Add the members again instead.",
            "organization",
            slug=slug,
        )
    with services().stores.database.writing() as session:
        # Some may have been deleted since.
        left = list(users.ids(session, removal.user_ids, organization_id=None, keep=True))
        added = len(organizations.add_members(session, caller(), slug, left).changed)
        audit.record(session, actor=sessions.actor(), action="addMembers", subject=f"{added} to {slug}")
    sentence = f"Undone: {added} {'is a member' if added == 1 else 'are members'} again."
    if not _delegate(removal, set(left)):
        return warned(
            f"{sentence} The organization's grant has changed, so import them again to read their calendars.",
            "organization",
            slug=slug,
        )
    return done(sentence, "organization", slug=slug)


def _delegate(removal: Removal, left: set[str]) -> bool:
    """Restore the delegated connections; whether the grants allow all of them."""
    complete = True
    for provider in sorted({provider for provider, _, _ in removal.delegated}):
        members = [
            Member(user, email)
            for name, user, email in removal.delegated
            if name == provider and user in left
        ]
        try:
            with services().stores.database.writing() as session:
                imported = delegations.import_members(session, caller(), removal.slug, provider, members)
        except ApiError:
            complete = False
        else:
            # A member may have connected the account personally meanwhile.
            clean_up(imported.replaced)
    return complete


def _kept() -> OneTimeSecrets:
    stores = services().stores
    return OneTimeSecrets(stores.redis, stores.keyring)


def _key(token: str) -> str:
    return f"undo:{token[:64]}"
