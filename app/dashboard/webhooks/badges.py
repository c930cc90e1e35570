"""The state of a webhook as a word and a badge: the same on the list and on the webhook's own page."""

from __future__ import annotations

from collections.abc import Mapping

from store.sql.models import WebhookEndpoint
from store.sql.queries.attention import FailingWebhook
from store.sql.queries.deliveries import Counts


def badge_of(
    endpoint: WebhookEndpoint, counts: Counts, failing: Mapping[str, FailingWebhook]
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
