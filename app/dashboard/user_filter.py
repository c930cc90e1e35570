"""The filter of lists of users by the state of their connections."""

from __future__ import annotations

from collections.abc import Collection

from flask import request
from sqlalchemy import ColumnElement, and_, not_
from sqlalchemy.orm import Session

from app.dashboard.connection_badge import CONNECTED as CONNECTED_WORD
from app.dashboard.connection_badge import KIND_TITLES
from app.dashboard.overview import unread
from app.dashboard.overview.attention import ANY, useless_scopes
from app.dashboard.pagination import Chip, same_list
from store.sql.queries import attention
from store.sql.queries.attention import UserKind

# The value of ``show`` for users who need no attention.
CONNECTED = "connected"


def chosen() -> str:
    """The filter that the query asks for; empty for all users."""
    show = request.args.get("show", "")
    return show if show in (ANY, CONNECTED, unread.SHOW, *UserKind) else ""


def condition(session: Session) -> ColumnElement[bool] | None:
    """The condition that the users of the list meet; None for all users."""
    show = chosen()
    if not show:
        return None
    if show == unread.SHOW:
        return unread.of_users()
    # The other kinds do not depend on scopes.
    needs_scopes = show in (ANY, CONNECTED, UserKind.NO_CALENDARS)
    useless = useless_scopes(attention.scope_texts(session)) if needs_scopes else {}
    if show in (ANY, CONNECTED):
        wrong = attention.of_any_kind(useless, unread.failing())
        return wrong if show == ANY else not_(wrong)
    return attention.has_problem(UserKind(show), useless)


def to_invite(session: Session) -> ColumnElement[bool] | None:
    """The condition of the users of the list whom an invitation helps; None if the filter leads to none."""
    found = condition(session)
    if found is None or chosen() == CONNECTED:
        return None
    return and_(found, attention.can_be_helped_by_invitation(useless_scopes(attention.scope_texts(session))))


def chips(session: Session, endpoint: str, among: Collection[ColumnElement[bool]], **path: str) -> list[Chip]:
    """The filters of a list of users, each with the number that it finds of the users ``among``."""
    useless = useless_scopes(attention.scope_texts(session))
    counts = attention.user_counts(session, useless, unread.failing(), among)

    def chip(title: str, show: str | None, count: int) -> Chip:
        address = same_list(endpoint, show=show, after=None, before=None, **path)
        return Chip(title, address, chosen() == (show or ""), count)

    return [
        chip("All", None, counts.total),
        chip(CONNECTED_WORD.capitalize(), CONNECTED, counts.total - counts.any),
        chip(unread.TITLE, unread.SHOW, counts.unbookable),
        chip("Needs attention", ANY, counts.any),
        *(chip(KIND_TITLES[kind], kind.value, counts.of(kind)) for kind in UserKind),
    ]
