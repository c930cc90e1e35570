"""The sandbox's control API: accounts, faults, revocation, request counts and guest notifications.

``DELETE /sandbox/accounts/{email}`` deletes the accounts of an address, at both providers: their tokens are
refused, a domain's directory does not list them, and calls that name them are answered as for an address
that never existed. No notification is sent.

``GET /sandbox/notices`` returns the writes for which Google notified an event's guests (``sendUpdates``), in
order: ``[{"operation", "email", "eventId", "guests"}]``, where ``email`` is the account's.

``GET /sandbox/channels`` returns the watch channels and subscriptions that have not ended:
``[{"id", "provider", "email", "calendarId", "address", "expiresAt", "sent", "dropped"}]``. ``POST`` there

- ``/drop`` ``{"provider"?, "email"?}`` silently drops the matching ones;
- ``/lifecycle`` ``{"event", "email"?}`` sends Graph's ``reauthorizationRequired``, ``missed`` or
  ``subscriptionRemoved``, which ends the subscription;
- ``/longest`` ``{"seconds"}`` limits the lifetime of new and renewed ones.

Faults of the operations ``google.push`` and ``microsoft.push`` affect notifications: ``latencyMs`` delays
them, ``"body": "lost"`` or ``"doubled"`` drops or repeats them.

``POST /sandbox/sync-tokens/expire`` ``{"provider"?}`` lets all sync tokens expire: Google's ``syncToken`` and
Graph's delta and skip tokens.

``POST /sandbox/shares`` ``{"provider", "email", "calendarId"?, "with", "accessRole"?}`` puts a calendar of
the account ``email`` (default: the main one) on the list of the account ``with`` (default role: ``writer``).
201 ``{"calendarId"}``: the id on the second list. See ``shares``.

``POST``, ``PATCH`` and ``DELETE`` of ``/sandbox/domains`` make a domain with a grant for the whole
organization, change it and withdraw the grant. See ``domains``.

``GET /sandbox/requests`` returns ``{"total", "byOperation", "struck"}``. A ``$batch`` is one in the total
and one ``microsoft.batch``; its parts count by operation only. A freeBusy query counts once.

Any client id and secret is accepted, unless it begins with ``wrong``: then it is rejected as unknown, and so
is such a tenant at Microsoft. Secrets that begin with ``expired`` are rejected as expired. Client credentials
for the tenant of a domain must be those of the domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from providers.sandbox import bulk, domains, pushing, seeds, shares, wild
from providers.sandbox.accounts import Account
from providers.sandbox.exchange import Answer, Request
from providers.sandbox.faults import Fault
from providers.sandbox.world import LIFETIME, World

FAULT = {
    **dict.fromkeys(("email", "provider", "calendarId", "operation", "reason", "body", "wild"), str),
    **dict.fromkeys(("status", "times"), int),
    **dict.fromkeys(("retryAfter", "latencyMs"), float),
}
JSON = {"Content-Type": "application/json"}

# The application that receives an account's tokens, unless the description has another ``clientId``;
# installations are registered under this id.
CLIENT_ID = "sandbox"


def respond(world: World, request: Request) -> Answer:
    """Handle a call below ``/sandbox``."""
    try:
        match request.method, request.path[1:]:
            case "GET", ["health"]:
                return json_answer({"status": "ok"})
            case "POST", ["accounts"]:
                return json_answer(one_account(world, body(request)), 201)
            case "POST", ["accounts", "bulk"]:
                return json_answer(many_accounts(world, body(request)), 201)
            case "POST", ["accounts", email, "revoke"]:
                return revoke(world, email)
            case "DELETE", ["accounts", email]:
                return delete(world, email)
            case "POST", ["shares"]:
                return json_answer({"calendarId": shares.share(world, body(request)).id}, 201)
            case "POST", ["domains"]:
                return json_answer(domains.create(world, body(request), request.origin), 201)
            case "PATCH", ["domains", name]:
                domains.change(world, name, body(request), request.one("provider"))
                return Answer(204)
            case "DELETE", ["domains", name]:
                domains.change(world, name, {"withdrawn": True}, request.one("provider"))
                return Answer(204)
            case "POST", ["faults"]:
                world.faults.post(fault(body(request)))
                return json_answer({"faults": len(world.faults.posted)}, 201)
            case "DELETE", ["faults"]:
                world.faults.clear()
                return Answer(204)
            case "GET", ["requests"]:
                counted = {"total": world.total, "byOperation": dict(world.by_operation)}
                return json_answer(counted | {"struck": world.faults.struck})
            case "GET", ["notices"]:
                return json_answer(world.notices)
            case method, ["channels", *what]:
                document = pushing.respond(world, method, what, body(request))
                return json_answer(document) if document is not None else problem(404, "No such call")
            case "POST", ["sync-tokens", "expire"]:
                world.syncs.expire(seeds.read(body(request), {"provider": str}).get("provider"))
                return Answer(204)
            case "DELETE", ["requests"]:
                world.forget_requests()
                return Answer(204)
            case "DELETE", []:
                world.forget()
                return Answer(204)
    except domains.UnknownDomain as error:
        return problem(404, str(error))
    except seeds.Undescribed as error:
        return problem(400, str(error))
    return problem(404, f"No such call: {request.method} /{'/'.join(request.path)}")


def json_answer(document: Any, status: int = 200) -> Answer:
    return Answer(status, document=document, headers=dict(JSON))


def problem(status: int, message: str) -> Answer:
    """An error of the sandbox itself."""
    return json_answer({"error": message}, status)


def body(request: Request) -> dict[str, Any]:
    try:
        document = orjson.loads(request.body or b"{}")
    except orjson.JSONDecodeError as error:
        raise seeds.Undescribed(f"the body is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise seeds.Undescribed("the body is not an object")
    return document


def one_account(world: World, spec: Mapping[str, Any]) -> dict[str, Any]:
    return admitted(world, seeds.account(world, spec), spec)


def many_accounts(world: World, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [admitted(world, account, spec) for account in bulk.accounts(spec)]


def admitted(world: World, account: Account, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Add an account with a grant, and return its tokens."""
    scopes = seeds.scopes(account.provider, spec.get("scope"))
    world.add(account)
    grant = world.consent(account, scopes, spec.get("clientId") or CLIENT_ID)
    # Only for the first access token: refreshed ones live as usual.
    lifetime = LIFETIME if spec.get("expiresIn") is None else spec["expiresIn"]
    expires_at = datetime.now(UTC) + timedelta(seconds=lifetime)
    return {
        "provider": account.provider,
        "email": account.email,
        "accessToken": world.access_token(grant, lifetime=lifetime),
        "refreshToken": world.refresh_token(grant),
        "expiresAt": expires_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "scope": " ".join(scopes),
        "mainCalendarId": None if account.primary is None else account.primary.id,
    }


def revoke(world: World, email: str) -> Answer:
    """Revoke every grant of an address, at both providers."""
    for account in (found := accounts(world, email)):
        account.revoke()
    return Answer(204) if found else problem(404, f"No account {email}")


def delete(world: World, email: str) -> Answer:
    """Delete the accounts of an address, at both providers."""
    for account in (found := accounts(world, email)):
        world.remove(account)
    return Answer(204) if found else problem(404, f"No account {email}")


def accounts(world: World, email: str) -> list[Account]:
    """The accounts of an address, at both providers."""
    found = [world.account(provider, email) for provider in ("google", "microsoft")]
    return [account for account in found if account is not None]


def fault(spec: Mapping[str, Any]) -> Fault:
    """A fault from its description."""
    if unknown := spec.keys() - FAULT.keys():
        raise seeds.Undescribed(f"a fault has no {', '.join(sorted(unknown))}")
    if spec.get("body") not in (None, "truncated", "reset", "html", "pending", "lost", "doubled"):
        raise seeds.Undescribed("body is truncated, reset, html, pending, lost or doubled")
    if spec.get("wild") not in (None, *wild.KINDS):
        raise seeds.Undescribed(f"wild is {', '.join(wild.KINDS)}")
    seeds.read(spec, FAULT)
    return Fault(
        provider=spec.get("provider"),
        email=spec.get("email"),
        calendar=spec.get("calendarId"),
        operation=spec.get("operation"),
        status=spec.get("status"),
        reason=spec.get("reason"),
        retry_after=spec.get("retryAfter"),
        latency=(spec.get("latencyMs") or 0) / 1000,
        body=spec.get("body"),
        wild=spec.get("wild"),
        times=spec.get("times"),
    )
