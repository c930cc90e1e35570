"""Changing a webhook endpoint: its URL and events, and pausing it."""

from __future__ import annotations

from flask import request
from flask.typing import ResponseReturnValue

from app.accounts import webhook_endpoints
from app.dashboard import forms
from app.dashboard.blueprint import blp, done, page
from app.dashboard.webhooks.pages import EVENT_DESCRIPTIONS, check
from app.http.authentication import caller
from app.http.route_facts import route_facts
from app.schemas.webhooks import EVENTS, WebhookUrl
from app.services import services
from store.sql.models import Role, WebhookEndpoint


class WebhookChangeForm(forms.Body):
    """The URL of an endpoint. Its events are checkboxes of one name, which are read from the request."""

    url = WebhookUrl(required=True)


@blp.get("/webhooks/<webhook_id>/edit")
@route_facts(role=Role.OPERATOR)
def edit_webhook(webhook_id: str) -> ResponseReturnValue:
    """The form for changing an endpoint."""
    endpoint = _known(webhook_id)
    return _form(endpoint, forms.blank(url=endpoint.url), endpoint.events)


@blp.post("/webhooks/<webhook_id>/edit")
@route_facts(role=Role.OPERATOR)
def change_webhook(webhook_id: str) -> ResponseReturnValue:
    """Change an endpoint. Pending deliveries go to the new URL."""
    endpoint = _known(webhook_id)
    form = forms.read(WebhookChangeForm)
    chosen = [event for event in EVENTS if event in request.form.getlist("events")]
    check(form, chosen, known_url=endpoint.url)
    if not form:
        return _form(endpoint, form, chosen, 400)
    with services().stores.database.writing() as session:
        webhook_endpoints.change(session, caller(), webhook_id, url=form.data["url"], events=chosen)
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


def _form(
    endpoint: WebhookEndpoint, form: forms.Form, chosen: list[str], status: int = 200
) -> ResponseReturnValue:
    return page(
        "edit_webhook.html",
        status,
        endpoint=endpoint,
        form=form,
        chosen=chosen,
        event_descriptions=EVENT_DESCRIPTIONS,
    )
