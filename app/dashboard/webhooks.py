"""Webhook endpoints: listing, creating and deleting."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from flask import request
from flask.typing import ResponseReturnValue

from app.accounts import webhook_endpoints
from app.dashboard import forms
from app.dashboard.blueprint import blp, done, failed, page, warned
from app.dashboard.forms import Slug
from app.dashboard.overview import attention
from app.dashboard.pagination import MAX_CHOICE, Chip, ResultPage, after, same_list
from app.http.authentication import caller
from app.http.errors import Conflict, Invalid
from app.http.routes import route_facts
from app.schemas.fields import Text, Word
from app.schemas.webhooks import EVENTS, WebhookUrl
from app.services import services
from store.sql.models import Role, WebhookEndpoint
from store.sql.queries import deliveries, organizations
from store.sql.queries import webhooks as stored
from store.sql.queries.attention import FailingWebhook
from store.sql.queries.deliveries import DeliveryCounts
from store.sql.queries.webhook_events import WebhookEvent

# The value of ``show`` for endpoints that fail.
FAILING = "failing"

# For the form.
EVENT_DESCRIPTIONS = {
    WebhookEvent.CALENDAR_CHANGED: "An event in a calendar was created, changed or deleted.",
    WebhookEvent.EVENT_CREATED: "An event was created in a watched calendar.",
    WebhookEvent.EVENT_UPDATED: "An event of a watched calendar was changed.",
    WebhookEvent.EVENT_DELETED: "An event of a watched calendar was deleted.",
    WebhookEvent.CONNECTION_EXPIRED: "A user's grant has ended at the provider: the user must connect again.",
    WebhookEvent.CONNECTION_RESTORED: "A connection that had ended works again.",
    WebhookEvent.GRANT_EXPIRED: "A provider refuses an organization's grant: its members cannot be read.",
    WebhookEvent.GRANT_RESTORED: "The grant of an organization that had ended works again.",
    WebhookEvent.HOLD_CREATED: "Time of users was held.",
    WebhookEvent.HOLD_EXPIRED: "A hold has expired: its time is free again.",
    WebhookEvent.HOLD_RELEASED: "A hold was released, or an event was created in its time.",
}

# The value of the checkbox for the content of events.
CONTENT = "yes"

SENT_BEFORE = (
    "This form was sent before, and no second webhook was made. The secret of the first was shown once: when "
    "it is lost, delete that webhook and create another here"
)


class WebhookForm(forms.Body):
    """A new endpoint. Its events are checkboxes of one name, which are read from the request."""

    url = WebhookUrl(required=True)
    organization = Slug(load_default=None)
    content = Word((CONTENT,), load_default=None)
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
    return _new_form(forms.blank(organization=request.args.get("organization", "")), EVENTS)


@blp.post("/webhooks/new")
@route_facts(role=Role.OPERATOR)
def create_webhook() -> ResponseReturnValue:
    """Create an endpoint and show its secret; it cannot be shown again."""
    form = forms.read(WebhookForm)
    event_types = [event for event in EVENTS if event in request.form.getlist("events")]
    check(form, event_types)
    if not form:
        return _new_form(form, event_types, 400)
    with forms.once(form, SENT_BEFORE) as unused:
        created = _create(form, event_types) if unused else None
    if created is None:
        return _new_form(form, event_types, 400 if unused else 409)
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
                session,
                caller(),
                url=form.data["url"],
                events=event_types,
                organization_id=found.get(slug),
                content=form.data["content"] is not None,
            )
    except Conflict as error:
        form.refuse("", f"{error.error}: delete one that you no longer need, then send this again.")
        return None


def _new_form(
    form: forms.Form, event_types: tuple[str, ...] | list[str], status: int = 200
) -> ResponseReturnValue:
    with services().stores.database.reading() as session:
        slugs = organizations.slugs(session, limit=MAX_CHOICE)
    return page(
        "webhook_form.html",
        status,
        form=form,
        chosen=event_types,
        event_descriptions=EVENT_DESCRIPTIONS,
        slugs=slugs,
        ticket=forms.new_form_token(),
    )


class WebhookChangeForm(forms.Body):
    """An endpoint's settings. Its events are checkboxes of one name, which are read from the request."""

    url = WebhookUrl(required=True)
    content = Word((CONTENT,), load_default=None)


@blp.get("/webhooks/<webhook_id>/edit")
@route_facts(role=Role.OPERATOR)
def edit_webhook(webhook_id: str) -> ResponseReturnValue:
    """The form for changing an endpoint."""
    endpoint = _known(webhook_id)
    return _settings_form(
        endpoint, forms.blank(url=endpoint.url, content=CONTENT if endpoint.content else ""), endpoint.events
    )


@blp.post("/webhooks/<webhook_id>/edit")
@route_facts(role=Role.OPERATOR)
def change_webhook(webhook_id: str) -> ResponseReturnValue:
    """Change an endpoint. Pending deliveries go to the new URL."""
    endpoint = _known(webhook_id)
    form = forms.read(WebhookChangeForm)
    chosen = [event for event in EVENTS if event in request.form.getlist("events")]
    check(form, chosen, known_url=endpoint.url)
    if not form:
        return _settings_form(endpoint, form, chosen, 400)
    with services().stores.database.writing() as session:
        content = form.data["content"] is not None
        webhook_endpoints.change(
            session, caller(), webhook_id, url=form.data["url"], events=chosen, content=content
        )
    return done("The webhook is changed.", "webhook", webhook_id=webhook_id)


@blp.post("/webhooks/<webhook_id>/pause")
@route_facts(role=Role.OPERATOR)
def pause_webhook(webhook_id: str) -> ResponseReturnValue:
    """Pause an endpoint: its deliveries wait."""
    _pause(webhook_id, paused=True)
    return done("The webhook is paused. Its deliveries wait.", "webhook", webhook_id=webhook_id)


@blp.post("/webhooks/<webhook_id>/resume")
@route_facts(role=Role.OPERATOR)
def resume_webhook(webhook_id: str) -> ResponseReturnValue:
    """End the pause of an endpoint, or enable a disabled one."""
    _pause(webhook_id, paused=False)
    return done(
        "The webhook is enabled. Pending deliveries are being sent.", "webhook", webhook_id=webhook_id
    )


def _pause(webhook_id: str, *, paused: bool) -> None:
    with services().stores.database.writing() as session:
        webhook_endpoints.change(session, caller(), webhook_id, paused=paused)


def _known(webhook_id: str) -> WebhookEndpoint:
    with services().stores.database.reading() as session:
        return webhook_endpoints.find(session, caller(), webhook_id)


def _settings_form(
    endpoint: WebhookEndpoint, form: forms.Form, chosen: list[str], status: int = 200
) -> ResponseReturnValue:
    return page(
        "webhook_form.html",
        status,
        endpoint=endpoint,
        form=form,
        chosen=chosen,
        event_descriptions=EVENT_DESCRIPTIONS,
    )


# For how long the old secret signs too, in seconds, by the words of the form.
OVERLAPS = {
    "86400": "for one more day",
    "604800": "for one more week",
    "3600": "for one more hour",
    "0": "not any more: it may be known to others",
}

REPLACED_BEFORE = "This form was sent before: the secret was replaced once. Replace it again if it is lost."


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
    overlap = timedelta(seconds=int(form.data["overlap"]))
    with forms.once(form, REPLACED_BEFORE) as unused:
        if not unused:
            return failed(REPLACED_BEFORE, "webhook", webhook_id=webhook_id)
        with services().stores.database.writing() as session:
            endpoint, secret = webhook_endpoints.rotate_secret(session, caller(), webhook_id, overlap=overlap)
    return page("webhook_made.html", endpoint=endpoint, secret=secret, rotated=True)


@blp.get("/webhooks/<webhook_id>/secret")
def reload_rotate(webhook_id: str) -> ResponseReturnValue:
    """The address of the page with the new secret, opened again: it is shown only once."""
    return warned("A secret is shown once, when it is made.", "webhook", webhook_id=webhook_id)


def badge_of(
    endpoint: WebhookEndpoint, counts: DeliveryCounts, failing: Mapping[str, FailingWebhook]
) -> tuple[str, str]:
    """The badge of a webhook: CSS class and word. ``failing`` are those whose last attempt failed."""
    if endpoint.disabled_at:
        return "bad", "disabled"
    if endpoint.paused_at:
        return "warn", "paused"
    if endpoint.id in failing:
        return "bad", "failing"
    if not counts.delivered:
        return "", "nothing delivered yet"
    return "good", "enabled"
