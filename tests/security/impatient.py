"""The web server with shorter timeouts, for tests that wait for them."""

from __future__ import annotations

from app.asgi import app as app
from app.server import wsgi_adapter

wsgi_adapter.BODY_SECONDS = wsgi_adapter.PIECE_SECONDS = 2.0
