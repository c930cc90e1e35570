"""How many bytes of request bodies a web process holds, in all and for each tenant.

The tenant is known before the body is received: the head of the request has its API key. A request whose key
is missing or not valid is refused then, and its body is not kept. Bodies that need no key (notifications of
providers, forms of the dashboard) count as those of one tenant.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from flask import Flask
from sqlalchemy.exc import SQLAlchemyError
from werkzeug.exceptions import HTTPException

from app.http import authentication
from app.http.errors import ApiError, quota_exceeded
from app.http.paths import path_info
from app.http.routes import RouteFacts, declared_facts
from app.schemas.error_codes import Code
from app.services import EXTENSION, Services
from store.coordination.shares import (
    MIB,
    STRANGERS,
    Exhausted,
    Quota,
    QuotaExceeded,
    SharedPlaces,
    share_of,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


class BodyBudget:
    """The budget of one process."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._urls = app.url_map.bind("")
        services: Services = app.extensions[EXTENSION]
        total = services.settings.waiting_body_mib * MIB
        share = share_of(total, services.settings.organization_share)
        self.places = SharedPlaces(Quota.BODY_BYTES, total, share)
        self._rows = services.stores.versioned_cache

    async def sender(self, environ: WSGIEnvironment, run: Callable[..., Awaitable[Any]]) -> int:
        """The tenant who sends a request; ``run`` calls a function on a thread.

        :raise ApiError: 401, if the route needs an API key and the request has no valid one
        """
        if not self._needs_key(environ):
            return STRANGERS
        header = environ.get("HTTP_AUTHORIZATION", "")
        caller = authentication.cached_caller(header, self._rows.recent())
        if caller is not None:
            return authentication.tenant_of(caller)
        tenant: int = await run(self._look_up, header)
        return tenant

    def _needs_key(self, environ: WSGIEnvironment) -> bool:
        path, method = path_info(environ), environ["REQUEST_METHOD"]
        if not path.startswith(authentication.PREFIX):
            return False
        try:
            endpoint, _ = self._urls.match(path.encode("latin1").decode(errors="replace"), method)
        except HTTPException:
            return False
        return (declared_facts(self._app, endpoint, method) or RouteFacts()).needs_key

    def _look_up(self, header: str) -> int:
        with self._app.app_context():
            try:
                return authentication.tenant_of(authentication.find_caller(header, self._rows.recent()))
            except SQLAlchemyError:
                # The application answers that the database is down.
                return STRANGERS

    def charge(self, tenant: int) -> Charge:
        """The bytes of one body, none yet."""
        return Charge(self.places, tenant)


class Charge:
    """The bytes of one body that are counted."""

    def __init__(self, places: SharedPlaces, tenant: int) -> None:
        self._places = places
        self._tenant = tenant
        self._amount = 0

    def add(self, amount: int) -> None:
        """Count more bytes.

        :raise ApiError: if that is more than the budget or the share of the tenant
        """
        try:
            self._places.take(self._tenant, amount)
        except (QuotaExceeded, Exhausted) as error:
            if isinstance(error, QuotaExceeded) and self._tenant != STRANGERS:
                raise quota_exceeded(error.quota) from None
            sentence = "Too many request bodies are arriving just now; try again in 1 s"
            raise ApiError(sentence, Code.OVERLOADED, retry_after=1) from None
        self._amount += amount

    def release(self) -> None:
        """The body is no longer held."""
        self._places.release(self._tenant, self._amount)
        self._amount = 0
