"""Serves the built documentation of this version at ``/docs``; error answers link to its sections."""

from __future__ import annotations

from flask import Flask

from app.http.error_handlers import DOCS


def install(app: Flask) -> None:
    """Register the pages."""
    from app.docs_site.pages import blp

    app.register_blueprint(blp, url_prefix=DOCS)
