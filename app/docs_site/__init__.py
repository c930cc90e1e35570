"""Serves the built documentation of this version at ``/docs``; error answers link to its sections.

Imported by ``app``, ``app.http``, ``app.openapi``.
"""

from __future__ import annotations

from flask import Flask, request

PATH = "/docs"


def install(app: Flask) -> None:
    """Register the pages."""
    from app.docs_site.pages import blp

    app.register_blueprint(blp, url_prefix=PATH)


def help_link(section: str) -> dict[str, str]:
    """The ``Link`` header (RFC 8288) of an error answer, to a section of the page on errors."""
    return {"Link": f'<{request.script_root}{PATH}/reference/errors/#{section}>; rel="help"'}
