"""An authorized call to a provider, as its operations receive it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from providers.sandbox.accounts import Access, Account
from providers.sandbox.exchange import Answer, Request
from providers.sandbox.faults import Fault, Hit, Place
from providers.sandbox.wild import REFUSED_PART, UNKNOWN_QUOTA
from providers.sandbox.world import World

HTML = (
    b"<!DOCTYPE html><html><head><title>Error</title></head>"
    b"<body><h1>The service is on its way</h1><p>Please come back later.</p></body></html>"
)


@dataclass(eq=False, slots=True)
class Call:
    """One call to a world with its token; ``part`` is True for a part of a ``$batch``."""

    world: World
    request: Request
    access: Access
    part: bool = False

    @property
    def account(self) -> Account:
        """The account of the token."""
        return self.access.grant.account

    def json(self) -> Any:
        """The body.

        :raise ValueError: if it is not JSON
        """
        return orjson.loads(self.request.body or b"null")


def place(
    world: World, account: Account | None, provider: str, operation: str, *calendars: str, **more: bool
) -> Place:
    """The attributes of a call that faults match; ``calendars`` as spelled in the call."""
    names = frozenset(calendars)
    if account is not None:
        names = names.union(*(account.names(calendar) for calendar in calendars))
    return Place(provider, operation, account.email if account else "", names, **more)


def spoilt(answer: Answer, hit: Hit) -> Answer:
    """The answer with the delay and damage of a fault."""
    answer.delay += hit.delay
    fault = hit.fault
    if fault is None:
        return answer
    if fault.retry_after is not None:
        answer.headers["Retry-After"] = f"{fault.retry_after:g}"
    if fault.body == "html":
        answer.document, answer.body = None, HTML
        answer.headers["Content-Type"] = "text/html; charset=UTF-8"
    elif fault.body in ("truncated", "reset"):
        answer.wreck = fault.body
    return answer


def replaces(fault: Fault | None) -> bool:
    """Whether a fault replaces the provider's answer instead of damaging it."""
    return fault is not None and (
        fault.status is not None or fault.reason is not None or fault.wild in (REFUSED_PART, UNKNOWN_QUOTA)
    )
