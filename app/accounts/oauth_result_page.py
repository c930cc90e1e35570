"""The browser's response after a consent: a page with the result, or a redirect to ``returnUrl``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from flask import Response

from app.accounts import customer_pages, oauth_flow
from app.accounts.consent_refusals import ConsentRefused
from app.http.errors import ApiError
from providers import registry
from providers.scopes import Level, Operation
from store.security.one_time_secrets import PendingConsent

# Widest access first.
_ACCESS = {
    Level.WRITE: (Operation.INSERT_EVENT, "Calendars and events: reading and writing"),
    Level.READ: (Operation.LIST_EVENTS, "Calendars and events: reading"),
    Level.FREE_BUSY: (Operation.FREE_BUSY, "Free and busy times only"),
}
# For scopes by which no busy time can be read.
NO_TIMES = "No busy times can be read with this access"

_NEXT = {
    400: "Nothing has changed. To connect, ask for a new link and open it within ten minutes.",
    404: "Nothing has changed.",
}
_LATER = (
    "Nothing has changed. Ask for a new link in a few minutes; if that fails too, contact the administrator."
)


def stale(provider: str) -> Response:
    """The page for a link that has expired or was used before."""
    sentence = "This link has expired, or was used before. If you have just connected, all is well"
    return _page(provider, 400, error=sentence, hint="Otherwise ask for a new link.")


def finished(consent: PendingConsent, error: ApiError | None) -> Response:
    """The response after a consent; ``error`` is None if the account is connected."""
    if consent.return_url is not None:
        return _back(consent.return_url, consent.provider, error)
    provider = consent.provider
    if error is not None:
        again = oauth_flow.again(consent) if oauth_flow.can_be_repeated(consent, error) else None
        return _page(
            provider,
            error.status,
            error=error.error,
            hint="Nothing has changed." if again else _NEXT.get(error.status, _LATER),
            again=again,
        )
    email, scopes = oauth_flow.granted(consent)
    missing = oauth_flow.not_granted(consent, scopes)
    granted = level(provider, scopes)
    return _page(
        provider,
        200,
        email=email,
        access=access(provider, scopes),
        boundary=granted and customer_pages.BOUNDARIES[granted],
        no_times=NO_TIMES,
        missing=missing,
        again=oauth_flow.again(consent) if missing else None,
    )


def access(provider: str, scopes: Iterable[str]) -> str | None:
    """A description of the access that scopes grant; None without access to calendars."""
    granted = level(provider, scopes)
    return None if granted is None else _ACCESS[granted][1]


def level(provider: str, scopes: Iterable[str]) -> Level | None:
    """The level that scopes grant; None without access to calendars."""
    granted, rules = frozenset(scopes), registry.scopes(provider)
    return next((each for each, (operation, _) in _ACCESS.items() if rules.allows(granted, operation)), None)


def _back(url: str, provider: str, error: ApiError | None) -> Response:
    answer = {"provider": provider, "connected": "true" if error is None else "false"}
    if url.startswith("/"):
        # A page of this service. It shows no sentence from a query, which anybody can write.
        if isinstance(error, ConsentRefused):
            answer |= {"refusal": error.refusal, "missing": ",".join(error.missing)}
    elif error is not None:
        answer["error"] = error.error
    parts = urlsplit(url)
    query = "&".join(part for part in (parts.query, urlencode(answer)) if part)
    return customer_pages.private(
        Response(status=302, headers={"Location": urlunsplit(parts._replace(query=query))})
    )


def _page(provider: str, status: int, **values: Any) -> Response:
    return customer_pages.render("consent.html", status, provider=registry.title(provider), **values)
