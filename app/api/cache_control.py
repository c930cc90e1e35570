"""The header ``Cache-Control`` of a request."""

from __future__ import annotations

from flask import request

from app.availability.parameters import Freshness, required_freshness


def freshness() -> Freshness:
    """The freshness that this request requires."""
    return required_freshness(request.headers.get("Cache-Control"))
