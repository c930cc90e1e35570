"""The web server's worker with shorter timeouts, for tests that wait for them."""

from __future__ import annotations

from app.server import client_socket
from app.server.gunicorn_worker import Worker as Worker

client_socket.PATIENCE = 2.0
