"""Webhook endpoints: listing, creating and deleting."""

from __future__ import annotations

from flask import request
from flask.typing import ResponseReturnValue

from app.accounts import webhook_endpoints
from app.dashboard import form_tokens, forms
from app.dashboard.blueprint import blp, done, page
from app.dashboard.identifiers import Slug
from app.dashboard.overview import attention
from app.dashboard.pagination import MAX_CHOICE, Chip, ResultPage, after, same_list
from app.dashboard.webhooks.badges import badge_of
from app.http.authentication import caller
from app.http.errors import Conflict, Invalid
from app.http.route_facts import route_facts
from app.schemas.fields import Text
from app.schemas.webhooks import EVENTS, WebhookUrl
from app.services import services
from store.sql.models import Role, WebhookEndpoint
from store.sql.queries import deliveries, organizations
from store.sql.queries import webhooks as stored
from store.sql.queries.webhook_events import WebhookEvent

# The value of ``show`` for endpoints that fail.
FAILING = "failing"

# For the form.
EVENT_DESCRIPTIONS = {
    WebhookEvent.CALENDAR_CHANGED: "An event in a calendar was created, changed or deleted.",
    WebhookEvent.CONNECTION_EXPIRED: "A user's grant has ended at the provider: the user must connect again.",
    WebhookEvent.CONNECTION_RESTORED: "A connection that had ended works again.",
    WebhookEvent.GRANT_EXPIRED: "A provider refuses an organization's grant: its members cannot be read.",
    WebhookEvent.GRANT_RESTORED: "The grant of an organization that had ended works again.",
    WebhookEvent.HOLD_CREATED: "Time of users was held.",
    WebhookEvent.HOLD_EXPIRED: "A hold has expired: its time is free again.",
    WebhookEvent.HOLD_RELEASED: "A hold was released, or an event was created in its time.",
}

SENT_BEFORE = (
    "This form was sent before, and no second webhook was made. The secret of the first was shown once: when "
    "it is lost, delete that webhook and create another here"
)


class WebhookForm(forms.Body):
    """A new endpoint. Its events are checkboxes of one name, which are read from the request."""

    url = WebhookUrl(required=True)
    organization = Slug(load_default=None)
    ticket = Text(shortest=1, longest=64, required=True)


@blp.get("/webhooks")
def webhooks() -> ResponseReturnValue:
    """The endpoints of all organizations, or the failing ones, with the counts of their deliveries."""
    narrow = request.args.get("show") == FAILING
    with services().stores.database.reading() as session:
        failing = attention.failing(session)
        among = list(failing) if narrow else None
        found = ResultPage.of(
            stored.listed(session, after=after(), limit=ResultPage.FETCHED, endpoint_ids=among)
        )
        counts = deliveries.counts(session, [each.endpoint.id for each in found.rows])
    shown = [
        Chip("All", same_list("webhooks", show=None, after=None), not narrow),
        Chip("Failing", same_list("webhooks", show=FAILING, after=None), narrow, len(failing)),
    ]
    return page(
        "webhooks.html",
        found=found,
        counts=counts,
        failing=failing,
        state=badge_of,
        shown=shown,
        narrow=narrow,
    )


@blp.get("/webhooks/new")
@route_facts(role=Role.OPERATOR)
def new_webhook() -> ResponseReturnValue:
    """The form for an endpoint."""
    return _form(forms.blank(organization=request.args.get("organization", "")), EVENTS)


@blp.post("/webhooks/new")
@route_facts(role=Role.OPERATOR)
def create_webhook() -> ResponseReturnValue:
    """Create an endpoint and show its secret; it cannot be shown again."""
    form = forms.read(WebhookForm)
    event_types = [event for event in EVENTS if event in request.form.getlist("events")]
    check(form, event_types)
    if not form:
        return _form(form, event_types, 400)
    if not form_tokens.use(form.data["ticket"]):
        form.refuse("", SENT_BEFORE)
        return _form(form, event_types, 409)
    try:
        created = _create(form, event_types)
    except Exception:
        form_tokens.release(form.data["ticket"])
        raise
    if created is None:
        form_tokens.release(form.data["ticket"])
        return _form(form, event_types, 400)
    endpoint, secret = created
    return page("webhook_made.html", endpoint=endpoint, secret=secret)


@blp.post("/webhooks/<webhook_id>/delete")
@route_facts(role=Role.OPERATOR)
def delete_webhook(webhook_id: str) -> ResponseReturnValue:
    """Delete an endpoint with its pending deliveries and its log."""
    with services().stores.database.writing() as session:
        webhook_endpoints.remove(session, caller(), webhook_id)
    return done("The webhook is deleted. Its pending deliveries are not sent.", "webhooks")


def check(form: forms.Form, event_types: list[str], *, known_url: str | None = None) -> None:
    """Add the errors that the schema cannot find. ``known_url`` was checked before."""
    if not event_types:
        form.refuse("events", "must include at least one")
    if form and form.data["url"] != known_url:
        try:
            webhook_endpoints.require_public_address(form.data["url"])
        except Invalid as error:
            form.refuse("url", error.error.removeprefix("url "))


def _create(form: forms.Form, event_types: list[str]) -> tuple[WebhookEndpoint, str] | None:
    """Create an endpoint; returns it with its secret, or None with an error in the form."""
    slug, database = form.data["organization"], services().stores.database
    try:
        with database.writing() as session:
            found = (
                organizations.ids(session, [slug], organization_id=None, keep=True)
                if slug is not None
                else {}
            )
            if slug is not None and slug not in found:
                form.refuse("organization", "with this slug does not exist")
                return None
            return webhook_endpoints.create(
                session, caller(), url=form.data["url"], events=event_types, organization_id=found.get(slug)
            )
    except Conflict as error:
        form.refuse("", f"{error.error}: delete one that you no longer need, then send this again.")
        return None


def _form(
    form: forms.Form, event_types: tuple[str, ...] | list[str], status: int = 200
) -> ResponseReturnValue:
    with services().stores.database.reading() as session:
        slugs = organizations.slugs(session, limit=MAX_CHOICE)
    return page(
        "new_webhook.html",
        status,
        form=form,
        chosen=event_types,
        event_descriptions=EVENT_DESCRIPTIONS,
        slugs=slugs,
        ticket=form_tokens.new_form_token(),
    )
