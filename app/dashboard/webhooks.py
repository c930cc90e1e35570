"""Webhook endpoints: which there are, making one, and deleting one."""

from __future__ import annotations

from flask import request
from flask.typing import ResponseReturnValue

from app.accounts import webhook_endpoints
from app.dashboard import form_tokens, forms
from app.dashboard.blueprint import blp, done, page
from app.dashboard.identifiers import Slug
from app.dashboard.pagination import LONGEST_CHOICE, Onward, after
from app.http.errors import Conflict, Invalid
from app.schemas.fields import Text
from app.schemas.webhooks import EVENTS, WebhookUrl
from app.services import services
from store.sql.models import WebhookEndpoint
from store.sql.queries import deliveries, organizations
from store.sql.queries import webhooks as stored

# What each event tells, for whoever chooses.
TELLS = {
    stored.Event.CALENDAR_CHANGED: "An event in a calendar was made, changed or deleted.",
    stored.Event.CONNECTION_EXPIRED: "A user's grant has ended at the provider: they have to connect again.",
    stored.Event.CONNECTION_RESTORED: "A connection that had ended works again.",
}

SENT_BEFORE = (
    "This form was sent before, and no second webhook was made. The secret of the first was shown once: when "
    "it is lost, delete that webhook and create another here"
)


class WebhookForm(forms.Body):
    """A new endpoint; its events are chosen by boxes of one name."""

    url = WebhookUrl(required=True)
    organization = Slug(load_default=None)
    ticket = Text(shortest=1, longest=64, required=True)


@blp.get("/webhooks")
def webhooks() -> ResponseReturnValue:
    """Everybody's endpoints, with what became of the events for them."""
    with services().stores.database.reading() as session:
        found = Onward.of(stored.listed(session, after=after(), limit=Onward.FETCHED))
        counts = deliveries.counts(session, [each.endpoint.id for each in found.rows])
    return page("webhooks.html", found=found, counts=counts)


@blp.get("/webhooks/new")
def new_webhook() -> ResponseReturnValue:
    """The form for an endpoint."""
    return _form(forms.blank(organization=request.args.get("organization", "")), EVENTS)


@blp.post("/webhooks/new")
def create_webhook() -> ResponseReturnValue:
    """Make an endpoint and show its secret, this once."""
    form = forms.read(WebhookForm)
    chosen = [event for event in EVENTS if event in request.form.getlist("events")]
    _check(form, chosen)
    if not form:
        return _form(form, chosen, 400)
    if not form_tokens.take(form.data["ticket"]):
        form.refuse("", SENT_BEFORE)
        return _form(form, chosen, 409)
    try:
        made = _made(form, chosen)
    except Exception:
        form_tokens.give_back(form.data["ticket"])
        raise
    if made is None:
        form_tokens.give_back(form.data["ticket"])
        return _form(form, chosen, 400)
    endpoint, secret = made
    return page("webhook_made.html", endpoint=endpoint, secret=secret)


@blp.post("/webhooks/<webhook_id>/delete")
def delete_webhook(webhook_id: str) -> ResponseReturnValue:
    """Delete an endpoint, with what waits for it and its log."""
    with services().stores.database.writing() as session:
        webhook_endpoints.remove(session, webhook_id)
    return done("The webhook is deleted. What waited for it is not sent any more.", "webhooks")


def _check(form: forms.Form, chosen: list[str]) -> None:
    """Complain of what the schema cannot see."""
    if not chosen:
        form.refuse("events", "must be at least one")
    if form:
        try:
            webhook_endpoints.check_reach(form.data["url"])
        except Invalid as error:
            form.refuse("url", error.error.removeprefix("url "))


def _made(form: forms.Form, chosen: list[str]) -> tuple[WebhookEndpoint, str] | None:
    """The endpoint with its secret; None when it cannot be made, and the form says why."""
    slug, database = form.data["organization"], services().stores.database
    try:
        with database.writing() as session:
            found = organizations.ids(session, [slug], within=None, keep=True) if slug is not None else {}
            if slug is not None and slug not in found:
                form.refuse("organization", "is not one that exists")
                return None
            return webhook_endpoints.create(
                session, url=form.data["url"], events=chosen, organization_id=found.get(slug)
            )
    except Conflict as error:
        form.refuse("", f"{error.error}: delete one that is not needed any more, then send this again.")
        return None


def _form(form: forms.Form, chosen: tuple[str, ...] | list[str], status: int = 200) -> ResponseReturnValue:
    with services().stores.database.reading() as session:
        slugs = organizations.slugs(session, limit=LONGEST_CHOICE)
    return page(
        "new_webhook.html",
        status,
        form=form,
        chosen=chosen,
        tells=TELLS,
        slugs=slugs,
        ticket=form_tokens.ticket(),
    )
