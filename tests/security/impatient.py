"""The web server's worker with less patience, for tests that wait until it is used up."""

from __future__ import annotations

from app import hurried
from app.server import Worker as Worker

hurried.PATIENCE = 2.0
