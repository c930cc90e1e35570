"""The request, globals and app of the current context, without werkzeug's proxies.

They bypass ``flask.request``, ``flask.g`` and ``flask.current_app``, which run four Python functions for each
attribute that is read. Code that runs several times in each request uses this module, all other code
the proxies.
"""

from __future__ import annotations

from flask import Flask, Request
from flask.ctx import _AppCtxGlobals
from flask.globals import _cv_app, _cv_request


def current_request() -> Request:
    """The object behind ``flask.request``."""
    return _cv_request.get().request


def current_globals() -> _AppCtxGlobals:
    """The object behind ``flask.g``."""
    return _cv_app.get().g


def current_application() -> Flask:
    """The object behind ``flask.current_app``."""
    return _cv_app.get().app
