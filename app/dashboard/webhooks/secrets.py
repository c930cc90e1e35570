"""Replacing the secret that signs the deliveries to a webhook endpoint."""

from __future__ import annotations

from datetime import timedelta

from flask.typing import ResponseReturnValue

from app.accounts import webhook_endpoints
from app.dashboard import form_tokens, forms
from app.dashboard.blueprint import blp, failed, page, warned
from app.http.authentication import caller
from app.http.route_facts import route_facts
from app.schemas.fields import Text, Word
from app.services import services
from store.sql.models import Role

# For how long the old secret signs too, in seconds, by the words of the form.
OVERLAPS = {
    "86400": "for one more day",
    "604800": "for one more week",
    "3600": "for one more hour",
    "0": "not any more: it may be known to others",
}

SENT_BEFORE = "This form was sent before: the secret was replaced once. Replace it again if it is lost."


class RotationForm(forms.Body):
    """For how long the old secret stays valid."""

    overlap = Word(tuple(OVERLAPS), required=True)
    ticket = Text(shortest=1, longest=64, required=True)


@blp.post("/webhooks/<webhook_id>/secret")
@route_facts(role=Role.OPERATOR)
def rotate_webhook_secret(webhook_id: str) -> ResponseReturnValue:
    """Replace the secret of an endpoint and show the new one; it cannot be shown again."""
    form = forms.read(RotationForm)
    if not form:
        return failed("Choose how long the old secret stays valid.", "webhook", webhook_id=webhook_id)
    if not form_tokens.use(form.data["ticket"]):
        return failed(SENT_BEFORE, "webhook", webhook_id=webhook_id)
    overlap = timedelta(seconds=int(form.data["overlap"]))
    try:
        with services().stores.database.writing() as session:
            endpoint, secret = webhook_endpoints.rotate_secret(session, caller(), webhook_id, overlap=overlap)
    except Exception:
        form_tokens.release(form.data["ticket"])
        raise
    return page("webhook_made.html", endpoint=endpoint, secret=secret, rotated=True)


@blp.get("/webhooks/<webhook_id>/secret")
def reload_rotate(webhook_id: str) -> ResponseReturnValue:
    """The address of the page with the new secret, opened again: it is shown only once."""
    return warned("A secret is shown once, when it is made.", "webhook", webhook_id=webhook_id)
