"""The webhook receiver of the demo: prints each event, so that its reader sees what a program would get."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, abort, request
from standardwebhooks import Webhook, WebhookVerificationError

PATH = "/webhooks"


def install(app: Flask, secret: str, report: Callable[[str], object]) -> None:
    """Let an application receive webhooks at ``PATH``, with the secret of their endpoint."""
    signed = Webhook(secret)
    # Almanac repeats a delivery whose answer it did not get.
    seen: set[str] = set()

    @app.post(PATH)
    def receive() -> tuple[str, int]:
        try:
            event = signed.verify(request.get_data(), dict(request.headers))
        except WebhookVerificationError:
            abort(400, "The signature is not that of Almanac")
        if (message := request.headers["webhook-id"]) not in seen:
            seen.add(message)
            fields = " ".join(f"{name}={value}" for name, value in event["data"].items())
            report(f"webhook {event['type']} {fields}")
        return "", 204
