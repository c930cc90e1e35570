"""The state of an invitation as a word and a badge."""

from __future__ import annotations

from store.sql.models import UserInvitation
from store.sql.queries import user_invitations
from store.sql.queries.user_invitations import State

BADGES = {
    State.PENDING: "",
    State.OPENED: "warn",
    State.CONNECTED: "good",
    State.EXPIRED: "bad",
    State.REVOKED: "",
}
STATE_TITLES = {
    State.PENDING: "Pending",
    State.OPENED: "Opened",
    State.CONNECTED: "Connected",
    State.EXPIRED: "Expired",
    State.REVOKED: "Withdrawn",
}


def badge_of(state: State) -> tuple[str, str]:
    """The badge of an invitation: CSS class and word."""
    return BADGES[state], STATE_TITLES[state].lower()


# The state of the newest invitation, for users who never connected.
_SENTENCES = {
    State.PENDING: "invited, not opened yet",
    State.OPENED: "invited, opened",
    State.CONNECTED: "connected once by an invitation",
    State.EXPIRED: "the invitation has expired",
    State.REVOKED: "the invitation was withdrawn",
}


def sentence(newest: UserInvitation | None) -> str:
    """The state of a user's newest invitation; None is a user without any."""
    return "not invited yet" if newest is None else _SENTENCES[user_invitations.state(newest)]
