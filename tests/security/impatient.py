"""The web server's worker with less patience, for tests that wait until it is used up."""

from __future__ import annotations

from app.server import client_socket
from app.server.gunicorn_worker import Worker as Worker

client_socket.PATIENCE = 2.0
