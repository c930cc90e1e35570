"""The request, globals and app of the current context, without werkzeug's proxies.

They bypass the attributes of ``flask.request``, ``flask.g`` and ``flask.current_app``: each read of one runs
four Python functions. Code that runs several times in each request uses this module, all other code the
proxies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from flask import Flask, Request, current_app, g, request

# The objects behind the proxies: https://werkzeug.palletsprojects.com/en/stable/local/
current_request: Callable[[], Request] = cast(Any, request)._get_current_object
current_globals: Callable[[], Any] = cast(Any, g)._get_current_object
current_application: Callable[[], Flask] = cast(Any, current_app)._get_current_object
