"""The WSGI application, configured from the environment."""

from __future__ import annotations

from app.web import create_app
from workers.settings import read_settings

app = create_app(read_settings())
