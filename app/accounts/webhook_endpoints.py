"""Operations on webhook endpoints and their deliveries, with the access checks of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy.orm import Session

from app.http.errors import Conflict, Invalid, NotFound
from app.schemas.error_codes import Code
from app.services import services
from providers.http import ssrf_guard
from store.sql.models import WebhookDelivery, WebhookEndpoint, now
from store.sql.queries import audit, deliveries, webhook_events, webhooks
from store.sql.queries.api_keys import Caller


def require_public_address(url: str) -> None:
    """Reject a URL whose host has a private address, unless the settings allow it.

    A host name that does not resolve passes: it is checked again before each delivery. This function resolves
    names, so do not call it within a transaction.

    :raise Invalid: with ``url`` in the message
    """
    allow_private = services().settings.webhooks_allow_private
    try:
        ssrf_guard.resolve(ssrf_guard.parse(url, allow_private=allow_private), allow_private=allow_private)
    except ssrf_guard.ForbiddenUrl as error:
        raise Invalid(f"url {error}", param="url") from error


def create(
    session: Session,
    caller: Caller,
    *,
    url: str,
    events: Sequence[str],
    organization_id: int | None,
    content: bool = False,
) -> tuple[WebhookEndpoint, str]:
    """Register an endpoint whose ``url`` passed ``require_public_address``; returns it with its secret.

    :raise Conflict: when the limit on endpoints is reached
    """
    distinct = list(dict.fromkeys(events))
    try:
        row, secret = webhooks.create(
            session, services().stores.keyring, url=url, events=distinct, organization_id=organization_id
        )
        row.content = content
    except webhooks.TooManyEndpoints as error:
        sentence = f"There are {webhooks.MAX_ENDPOINTS} webhooks already"
        raise Conflict(sentence, Code.TOO_MANY_WEBHOOKS) from error
    audit.record(
        session,
        actor=caller.visible,
        action="createWebhook",
        subject=row.id,
        changes={
            "url": (None, audit.host_of(url)),
            "events": (None, distinct),
            **({"content": (None, True)} if content else {}),
        },
    )
    return row, secret


def find(session: Session, caller: Caller, endpoint_id: str, *, to_change: bool = False) -> WebhookEndpoint:
    """An endpoint that the caller reaches. ``to_change`` locks it, so that it is not deleted meanwhile.

    :raise NotFound: when there is none
    """
    row = webhooks.find(session, endpoint_id, organization_id=caller.organization_id, to_change=to_change)
    if row is None:
        raise NotFound("Webhook not found", Code.WEBHOOK_NOT_FOUND)
    return row


def change(
    session: Session,
    caller: Caller,
    endpoint_id: str,
    *,
    url: str | None = None,
    events: Sequence[str] | None = None,
    paused: bool | None = None,
    content: bool | None = None,
) -> WebhookEndpoint:
    """Change an endpoint; None leaves a value unchanged. A new ``url`` has passed ``require_public_address``.

    Pending deliveries go to the new URL. ``paused`` False also enables a disabled endpoint, and so does a new
    URL.

    :raise NotFound: when there is none that the caller reaches
    """
    row = find(session, caller, endpoint_id, to_change=True)
    old_url, before = row.url, _visible_state(row)
    if events is not None:
        row.events = list(dict.fromkeys(events))
    if url is not None and url != row.url:
        row.url, row.disabled_at = url, None
    if content is not None:
        row.content = content
    if paused:
        row.paused_at = row.paused_at or now()
    elif paused is not None:
        webhooks.resume(session, row)
    session.flush()
    after = _visible_state(row)
    changes = {name: (before[name], after[name]) for name in before}
    if row.url != old_url and before["url"] == after["url"]:
        changes["url"] = before["url"], f"{after['url']} (another path)"
    audit.record(session, actor=caller.visible, action="changeWebhook", subject=endpoint_id, changes=changes)
    return row


def _visible_state(row: WebhookEndpoint) -> dict[str, object]:
    """The values of an endpoint that the audit log shows."""
    return {
        "url": audit.host_of(row.url),
        "events": list(row.events),
        "paused": row.paused_at is not None,
        "content": row.content,
    }


def rotate_secret(
    session: Session, caller: Caller, endpoint_id: str, *, overlap: timedelta
) -> tuple[WebhookEndpoint, str]:
    """Replace the secret of an endpoint; returns the endpoint and the new secret.

    Deliveries are signed with the old secret too until ``overlap`` has passed.

    :raise NotFound: when there is no such endpoint that the caller reaches
    """
    row = find(session, caller, endpoint_id, to_change=True)
    secret = webhooks.rotate(session, services().stores.keyring, row, overlap=overlap)
    audit.record(session, actor=caller.visible, action="rotateWebhookSecret", subject=endpoint_id)
    return row, secret


def send_test(session: Session, caller: Caller, endpoint_id: str) -> WebhookDelivery:
    """Send a test event after the session has committed.

    :raise NotFound: when there is no such endpoint that the caller reaches
    :raise Conflict: when the endpoint receives nothing at present
    """
    row = find(session, caller, endpoint_id, to_change=True)
    if row.paused_at is not None or row.disabled_at is not None:
        disabled = row.paused_at is None
        state, code = ("disabled", Code.WEBHOOK_DISABLED) if disabled else ("paused", Code.WEBHOOK_PAUSED)
        raise Conflict(f"The webhook is {state}: resume it first, with paused: false", code)
    audit.record(session, actor=caller.visible, action="testWebhook", subject=endpoint_id)
    return webhook_events.record_test(session, row.id)


def remove(session: Session, caller: Caller, endpoint_id: str) -> None:
    """Delete an endpoint with its pending deliveries and its log.

    :raise NotFound: when there is none that the caller reaches
    """
    webhooks.remove(session, find(session, caller, endpoint_id).id)
    audit.record(session, actor=caller.visible, action="deleteWebhook", subject=endpoint_id)


def replay_failed(session: Session, caller: Caller, endpoint_id: str) -> int:
    """Send all failed deliveries of an endpoint again after the session has committed; returns how many.

    This enables a disabled endpoint.

    :raise NotFound: when there is no such endpoint that the caller reaches
    """
    count = deliveries.replay_failed(session, find(session, caller, endpoint_id, to_change=True).id)
    if count:
        audit.record(session, actor=caller.visible, action="replayFailedDeliveries", subject=endpoint_id)
    return count


def replay(session: Session, caller: Caller, endpoint_id: str, delivery_id: str) -> WebhookDelivery:
    """Send a delivery again after the session has committed; this enables a disabled endpoint.

    :raise NotFound: when there is no such endpoint, or its log shows no such delivery
    """
    row = deliveries.replay(session, find(session, caller, endpoint_id, to_change=True).id, delivery_id)
    if row is None:
        raise NotFound("Delivery not found", Code.DELIVERY_NOT_FOUND)
    audit.record(
        session, actor=caller.visible, action="replayDelivery", subject=f"{endpoint_id}/{delivery_id}"
    )
    return row
