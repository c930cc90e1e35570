"""The web server with shorter timeouts, for tests that wait for them."""

from __future__ import annotations

from app.asgi import app as app
from app.server import wsgi_adapter

wsgi_adapter.PATIENCE = 2.0
