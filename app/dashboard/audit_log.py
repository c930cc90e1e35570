"""The audit log: who did what, and when."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from app.dashboard.blueprint import blp, page
from app.dashboard.pagination import ResultPage, number_before, searched
from app.services import services
from store.sql.queries import audit


@blp.get("/audit")
def audit_log() -> ResponseReturnValue:
    """The entries of the audit log that match the search, the newest first."""
    text, before = searched(), number_before()
    with services().stores.database.reading() as session:
        found = ResultPage.of(audit.page(session, text, before=before, limit=ResultPage.FETCHED))
    return page("audit_log.html", found=found, text=text, before=before)
