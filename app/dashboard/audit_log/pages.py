"""The audit log: who did what, and when."""

from __future__ import annotations

from flask import Response
from flask.typing import ResponseReturnValue

from app.dashboard.audit_log import export, filters, targets
from app.dashboard.blueprint import blp, page
from app.dashboard.pagination import ResultPage, number_before
from app.services import services
from store.sql.models import now
from store.sql.queries import administrators, audit


@blp.get("/audit")
def audit_log() -> ResponseReturnValue:
    """The records that match the filters, the newest first."""
    filtered, before = filters.read(), number_before()
    with services().stores.database.reading() as session:
        rows = audit.page(session, filtered.query, before=before, limit=ResultPage.FETCHED)
        found = ResultPage.of(rows)
        links = targets.links(session, found.rows)
        people = [each.name for each in administrators.every(session)]
    return page(
        "audit_log.html",
        400 if filtered.errors else 200,
        found=found,
        filters=filtered,
        before=before,
        links=links,
        people=people,
        actions=filters.SUGGESTED_ACTIONS,
    )


@blp.get("/audit/export")
def export_audit_log() -> ResponseReturnValue:
    """The records that match the filters, as CSV."""
    filtered = filters.read()
    if filtered.errors:
        return page("error.html", 400, title="This day is none", hint="Go back and correct it.", code=400)
    response = Response(export.lines(filtered.query, services().stores), mimetype="text/csv")
    name = f"audit-log-{now():%Y-%m-%d}.csv"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
