"""The documents of this version as pages, at ``/docs``; errors link to the section that helps.

Imported by ``app``, ``app.http``.
"""

from __future__ import annotations

from flask import Flask, request

PATH = "/docs"


def install(app: Flask) -> None:
    """The pages."""
    from app.docs_site.pages import blp

    app.register_blueprint(blp, url_prefix=PATH)


def help_link(section: str) -> dict[str, str]:
    """The header of an error that leads to a section of the page of errors (RFC 8288)."""
    return {"Link": f'<{request.script_root}{PATH}/errors#{section}>; rel="help"'}
