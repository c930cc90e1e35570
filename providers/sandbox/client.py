"""Controls a running sandbox: for tests, the demo and the benchmarks.

>>> sandbox = Sandbox("http://127.0.0.1:8090")
>>> alice = sandbox.account("google", "alice@example.com", events=[{"start": …, "end": …}])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

import requests

# Ten thousand accounts take a few seconds.
TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class SandboxAccount:
    """An account and the tokens of its first grant."""

    provider: str
    email: str
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_at: datetime
    scope: str
    main_calendar_id: str | None = None

    @classmethod
    def read(cls, answer: Mapping[str, str]) -> SandboxAccount:
        """From the answer of the control call."""
        return cls(
            provider=answer["provider"],
            email=answer["email"],
            access_token=answer["accessToken"],
            refresh_token=answer["refreshToken"],
            expires_at=datetime.fromisoformat(answer["expiresAt"]),
            scope=answer["scope"],
            main_calendar_id=answer["mainCalendarId"],
        )


@dataclass(frozen=True, slots=True)
class SandboxDomain:
    """A domain, and the credentials of the application that its administrator has authorized.

    ``subject`` and ``service_account_key`` are Google's; ``tenant``, ``client_id`` and ``client_secret`` are
    Microsoft's.
    """

    provider: str
    domain: str
    members: list[str]
    subject: str = ""
    service_account_key: dict[str, str] = field(default_factory=dict, repr=False)
    tenant: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> SandboxDomain:
        """From the answer of the control call."""
        return cls(
            provider=answer["provider"],
            domain=answer["domain"],
            members=[member["email"] for member in answer["members"]],
            subject=answer.get("subject", ""),
            service_account_key=answer.get("serviceAccountKey", {}),
            tenant=answer.get("tenant", ""),
            client_id=answer.get("clientId", ""),
            client_secret=answer.get("clientSecret", ""),
        )


@dataclass(frozen=True, slots=True)
class Requests:
    """How often the providers were called: HTTP requests, and operations with the parts of batches.

    ``struck`` counts how often a fault has changed or delayed something.
    """

    total: int
    by_operation: dict[str, int]
    struck: int


class Sandbox:
    """The control calls of the sandbox at ``url``; a rejected call raises ``requests.HTTPError``."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._session = requests.Session()
        # A proxy from the environment must not be used for a server on this machine.
        self._session.trust_env = False

    def account(
        self,
        provider: str,
        email: str,
        *,
        time_zone: str | None = None,
        scope: str | Iterable[str] | None = None,
        calendars: Iterable[Mapping[str, Any]] | None = None,
        events: Iterable[Mapping[str, Any]] = (),
        expires_in: int | None = None,
        client_id: str | None = None,
    ) -> SandboxAccount:
        """Create an account; without ``calendars`` it has one, without ``scope`` a full grant.

        ``expires_in`` is the lifetime of the access token in seconds; refreshed ones live an hour.
        ``client_id`` is the application that the tokens are for: by default the one that installations use.
        """
        body = {
            "provider": provider,
            "email": email,
            "timeZone": time_zone,
            "scope": scope if scope is None or isinstance(scope, str) else list(scope),
            "calendars": None if calendars is None else list(calendars),
            "events": list(events),
            "expiresIn": expires_in,
            "clientId": client_id,
        }
        return SandboxAccount.read(self._call("POST", "/accounts", body))

    def accounts_in_bulk(
        self,
        provider: str,
        count: int,
        *,
        email_pattern: str,
        events_per_account: int,
        start: str,
        days: int,
        seed: int = 0,
        **more: Any,
    ) -> list[SandboxAccount]:
        """Create many accounts with meetings on the working days from ``start``; ``{n}`` is their number."""
        body = {
            "provider": provider,
            "count": count,
            "emailPattern": email_pattern,
            "eventsPerAccount": events_per_account,
            "start": start,
            "days": days,
            "seed": seed,
            **more,
        }
        return [SandboxAccount.read(entry) for entry in self._call("POST", "/accounts/bulk", body)]

    def share(
        self,
        owner: SandboxAccount,
        reader: SandboxAccount,
        calendar_id: str = "primary",
        *,
        access_role: str = "writer",
    ) -> str:
        """Put a calendar of ``owner`` on the list of ``reader``; returns its id on that list."""
        body = {
            "provider": owner.provider,
            "email": owner.email,
            "calendarId": calendar_id,
            "with": reader.email,
            "accessRole": access_role,
        }
        return str(self._call("POST", "/shares", body)["calendarId"])

    def domain(
        self,
        provider: str,
        domain: str,
        members: Iterable[str | Mapping[str, Any]] = (),
        *,
        sharing: str | None = None,
        scope: str | Iterable[str] | None = None,
        bulk: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> SandboxDomain:
        """Create a domain with a grant to one application; see ``providers.sandbox.domains``.

        A member is an address or the description of an account. ``more`` are fields of the control call.
        """
        body = {
            "provider": provider,
            "domain": domain,
            "members": [_member(member) for member in members],
            "sharing": sharing,
            "scope": scope if scope is None or isinstance(scope, str) else list(scope),
            "bulk": bulk,
            **more,
        }
        return SandboxDomain.read(self._call("POST", "/domains", body))

    def change_domain(
        self, domain: str, *, members: Iterable[Mapping[str, Any]] | None = None, **fields: Any
    ) -> None:
        """Change a domain's ``sharing``, ``scope``, ``withdrawn`` or ``secretExpired``, or its members."""
        body = fields if members is None else {**fields, "members": list(members)}
        self._call("PATCH", f"/domains/{quote(domain, safe='')}", body)

    def withdraw(self, domain: str) -> None:
        """Withdraw the grant of a domain: its application gets no tokens, and those it has are invalid."""
        self._call("DELETE", f"/domains/{quote(domain, safe='')}")

    def fault(
        self,
        *,
        email: str | None = None,
        provider: str | None = None,
        calendar_id: str | None = None,
        operation: str | None = None,
        status: int | None = None,
        reason: str | None = None,
        retry_after: float | None = None,
        latency_ms: float | None = None,
        body: str | None = None,
        wild: str | None = None,
        times: int | None = None,
    ) -> None:
        """Activate a fault for the calls that match every given field; see ``providers.sandbox.faults``."""
        fault = {
            "email": email,
            "provider": provider,
            "calendarId": calendar_id,
            "operation": operation,
            "status": status,
            "reason": reason,
            "retryAfter": retry_after,
            "latencyMs": latency_ms,
            "body": body,
            "wild": wild,
            "times": times,
        }
        self._call("POST", "/faults", fault)

    def clear_faults(self) -> None:
        """Deactivate all faults."""
        self._call("DELETE", "/faults")

    def expire_sync_tokens(self, provider: str | None = None) -> None:
        """Let all sync tokens of a provider, or of both, expire."""
        self._call("POST", "/sync-tokens/expire", {} if provider is None else {"provider": provider})

    def revoke(self, email: str) -> None:
        """Revoke every grant of an address."""
        self._call("POST", f"/accounts/{quote(email, safe='')}/revoke")

    def delete(self, email: str) -> None:
        """Delete the accounts of an address."""
        self._call("DELETE", f"/accounts/{quote(email, safe='')}")

    def requests(self) -> Requests:
        """How often the providers were called since the start or since ``forget_requests``."""
        answer = self._call("GET", "/requests")
        return Requests(answer["total"], answer["byOperation"], answer["struck"])

    def notices(self) -> list[dict[str, Any]]:
        """The writes for which Google notified guests; see ``providers.sandbox.controls``."""
        found: list[dict[str, Any]] = self._call("GET", "/notices")
        return found

    def channels(self) -> list[dict[str, Any]]:
        """The watch channels and subscriptions; see ``providers.sandbox.controls``."""
        found: list[dict[str, Any]] = self._call("GET", "/channels")
        return found

    def drop_channels(self, *, provider: str | None = None, email: str | None = None) -> int:
        """Silently drop the matching channels; returns how many."""
        return int(self._call("POST", "/channels/drop", {"provider": provider, "email": email})["channels"])

    def lifecycle(self, event: str, *, email: str | None = None) -> int:
        """Send one of Graph's lifecycle notifications for each subscription; returns how many."""
        return int(self._call("POST", "/channels/lifecycle", {"event": event, "email": email})["channels"])

    def shorten_channels(self, seconds: float) -> None:
        """Limit the lifetime of new channels."""
        self._call("POST", "/channels/longest", {"seconds": seconds})

    def forget_requests(self) -> None:
        """Count from zero."""
        self._call("DELETE", "/requests")

    def reset(self) -> None:
        """Clear all state."""
        self._call("DELETE", "")

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        json = None if body is None else {name: value for name, value in body.items() if value is not None}
        response = self._session.request(method, f"{self.url}/sandbox{path}", json=json, timeout=TIMEOUT)
        if response.status_code == 400:
            raise requests.HTTPError(response.json()["error"], response=response)
        response.raise_for_status()
        return response.json() if response.content else None


def _member(member: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"email": member} if isinstance(member, str) else dict(member)
