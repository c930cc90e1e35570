"""The states of connections and of invitations, as words and badges."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from app.accounts import oauth_result_page
from app.dashboard.overview import unread
from providers import registry
from providers.scopes import Level, Operation
from store.cache.last_reads import LastRead
from store.sql.models import OAuthConnection, UserInvitation, now
from store.sql.queries import connections, user_invitations
from store.sql.queries.attention import ACCESS_NOTICE, UserKind
from store.sql.queries.user_invitations import InvitationState
from workers.execution.consent_gaps import join_names, missing_permissions

# The levels of access that can be requested from a user, the widest first: most integrations need it.
LEVELS = {
    Level.WRITE: "Reading and writing",
    Level.READ: "Reading",
    Level.FREE_BUSY: "Free and busy times only",
}

# A grant that allows this operation includes the level.
_PROVES = {
    Level.WRITE: Operation.INSERT_EVENT,
    Level.READ: Operation.LIST_EVENTS,
    Level.FREE_BUSY: Operation.FREE_BUSY,
}

# The word of each state, wherever it is shown: badges, filters, columns of lists and what needs attention.
ENDED, EXPIRING, NO_CALENDARS = "ended", "expiring or expired", "without calendars"
CONNECTED, NEVER = "connected", "never connected"
_BADGES = {ENDED: "bad", EXPIRING: "warn", NO_CALENDARS: "warn", CONNECTED: "good"}
WORDS = {
    UserKind.ENDED: ENDED,
    UserKind.NO_CALENDARS: NO_CALENDARS,
    UserKind.EXPIRING: EXPIRING,
    UserKind.NEVER: NEVER,
}
# The same as titles.
KIND_TITLES = {kind: word.capitalize() for kind, word in WORDS.items()}


def health(connection: OAuthConnection) -> str:
    """``ENDED``, ``NO_CALENDARS``, ``EXPIRING`` or ``CONNECTED``."""
    if not connection.usable:
        return ENDED
    if not access(connection):
        return NO_CALENDARS
    return EXPIRING if _expires_within(connection, ACCESS_NOTICE) else CONNECTED


def expired(connection: OAuthConnection) -> bool:
    """Whether the access token has expired, and no refresh token replaces it."""
    return _expires_within(connection, timedelta())


def _expires_within(connection: OAuthConnection, time: timedelta) -> bool:
    ends = connection.expires_at
    refreshed = connection.sealed_refresh_token is not None or connection.grant_id is not None
    return not refreshed and ends is not None and ends <= now() + time


def names_account(connection: OAuthConnection) -> bool:
    """Whether the account of a connection is known, so that another one can be refused in its place."""
    return connection.account_id is not None or bool(connections.addresses(connection))


def access(connection: OAuthConnection) -> str | None:
    """The granted access, in words; None when it reaches no calendar."""
    return access_of(connection.provider, connection.scope)


def access_of(provider: str, scopes: Iterable[str]) -> str | None:
    """The access that scopes grant, in words; None when they reach no calendar."""
    return oauth_result_page.access(provider, scopes)


def missing(connection: OAuthConnection, requested: str) -> str | None:
    """The access of a requested level that the grant lacks, in words; None if it lacks nothing.

    ``requested`` is from an address that anybody can write: text that is no level requests nothing.
    """
    if requested not in LEVELS:
        return None
    provider = connection.provider
    wanted = registry.scopes(provider).permitted(registry.scopes(provider).level_scopes(requested))
    left_out = missing_permissions(wanted, registry.scopes(provider).permitted(connection.scope))
    return join_names(left_out) if left_out else None


def level(connection: OAuthConnection) -> Level:
    """The level to request when the user connects again: the one that was granted."""
    provider, scopes = connection.provider, connection.scope
    return next(
        (level for level, each in _PROVES.items() if registry.scopes(provider).allows(scopes, each)),
        Level.WRITE,
    )


def badge(connection: OAuthConnection, failed: LastRead | None = None) -> tuple[str, str]:
    """The CSS class and the word of a connection's badge; ``failed`` is its last read if that failed."""
    word = health(connection)
    return ("bad", unread.WORD) if failed and word != ENDED else (_BADGES[word], word)


def badge_of(connection: OAuthConnection, failed: LastRead | None = None) -> tuple[str, str]:
    """As ``badge``, with the provider's name before the word."""
    kind, word = badge(connection, failed)
    return kind, f"{registry.title(connection.provider)}: {word}"


INVITATION_TITLES = {
    InvitationState.PENDING: "Pending",
    InvitationState.OPENED: "Opened",
    InvitationState.CONNECTED: "Connected",
    InvitationState.EXPIRED: "Expired",
    InvitationState.REVOKED: "Withdrawn",
}
_INVITATION_BADGES = {
    InvitationState.OPENED: "warn",
    InvitationState.CONNECTED: "good",
    InvitationState.EXPIRED: "bad",
}
# The state of the newest invitation, for users who never connected.
_INVITATION_SENTENCES = {
    InvitationState.PENDING: "invited, not opened yet",
    InvitationState.OPENED: "invited, opened",
    InvitationState.CONNECTED: "connected once by an invitation",
    InvitationState.EXPIRED: "the invitation has expired",
    InvitationState.REVOKED: "the invitation was withdrawn",
}


def invitation_badge(state: InvitationState) -> tuple[str, str]:
    """The badge of an invitation: CSS class and word."""
    return _INVITATION_BADGES.get(state, ""), INVITATION_TITLES[state].lower()


def invitation_sentence(newest: UserInvitation | None) -> str:
    """The state of a user's newest invitation; None is a user without any."""
    return "not invited yet" if newest is None else _INVITATION_SENTENCES[user_invitations.state(newest)]
