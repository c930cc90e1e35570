"""Lists as CSV files: the users of a search, and the members of an organization."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO

from flask import Response
from flask.typing import ResponseReturnValue

from app.dashboard import user_filter
from app.dashboard.blueprint import blp
from app.dashboard.csv_cells import harmless
from app.dashboard.organizations import get_organization
from app.dashboard.pagination import searched
from app.services import services
from store.sql.models import User
from store.sql.queries import users


def csv_file(name: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Response:
    """A CSV file to save, in UTF-8, without formulas."""
    text = StringIO()
    written = csv.writer(text, lineterminator="\r\n")
    written.writerow(header)
    written.writerows([harmless(each) for each in row] for row in rows)
    response = Response(text.getvalue(), mimetype="text/csv")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


@blp.get("/users.csv")
def export_users() -> ResponseReturnValue:
    """The users that the search and the filter find."""
    with services().stores.database.reading() as session:
        found = users.exported(session, searched(), condition=user_filter.condition(session))
        return csv_file("users", _HEADER, map(_row, found))


@blp.get("/organizations/<slug>/members.csv")
def export_members(slug: str) -> ResponseReturnValue:
    """The members that the search and the filter find. The import of a grant's members reads this file."""
    with services().stores.database.reading() as session:
        organization = get_organization(session, slug)
        found = users.exported(
            session, searched(), organization_id=organization.id, condition=user_filter.condition(session)
        )
        return csv_file(f"members-{slug}", _HEADER, map(_row, found))


_HEADER = ("userId", "email", "connections", "organizations", "registered")


def _row(user: User) -> list[str]:
    emails = [each.email for each in user.connections if each.email]
    return [
        user.custom_id,
        emails[0] if emails else "",
        " ".join(f"{each.provider}:{'connected' if each.usable else 'ended'}" for each in user.connections),
        " ".join(each.slug for each in user.organizations),
        f"{user.created_at:%Y-%m-%dT%H:%M:%SZ}",
    ]
