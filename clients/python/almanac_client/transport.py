"""Sends every request to Almanac, with retries and errors."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import requests
from requests.auth import AuthBase

from almanac_client.errors import RequestFailed, Unavailable, Unreadable, error_of

# Connect, then read, in seconds: Almanac itself waits up to ten for providers.
TIMEOUT = (3.05, 30.0)
# Maximum wait between two attempts; a longer ``Retry-After`` is raised instead.
LONGEST_WAIT = 10.0
FIRST_WAIT = 0.25

NO_ANSWER = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ContentDecodingError,
)


class _Bearer(AuthBase):
    """The API key of every request; passed as ``auth``, because requests prefers a ``.netrc`` to a header."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


@dataclass(frozen=True, slots=True)
class Reply:
    """The body and headers of a successful answer."""

    body: dict[str, Any]
    headers: Mapping[str, str]


class Transport:
    """Sends requests with an API key; retries requests that are safe to repeat."""

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        timeout: float | tuple[float, float],
        retries: int,
        session: requests.Session,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError("base_url begins with https:// or http://")
        self.base_url = base_url.rstrip("/")
        self._auth = _Bearer(key)
        self._timeout = timeout
        self._retries = retries
        self._session = session

    def get(
        self, path: str, query: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """A request that only reads."""
        return self.send("GET", path, query=query, headers=headers, repeatable=True)

    def create(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Reply:
        """A request that creates exactly once, even if retried."""
        key = {"Idempotency-Key": idempotency_key or str(uuid4())}
        return self.send(
            "POST", path, query=query, body=body, headers={**(headers or {}), **key}, repeatable=True
        )

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
    ) -> Reply:
        """The answer of a successful request.

        :raise RequestFailed: for any other answer, or none; the subclass says how to handle it
        """
        attempt = 0
        while True:
            try:
                return self._once(method, path, query, body, headers)
            except Unavailable as error:
                wait = _wait(error, attempt)
                if not repeatable or attempt == self._retries or wait is None:
                    raise
            time.sleep(wait)
            attempt += 1

    def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
    ) -> Reply:
        call = f"{method} {path}"
        try:
            answer = self._session.request(
                method,
                f"{self.base_url}/v1{path}",
                params=query,
                json=body,
                headers=headers,
                auth=self._auth,
                timeout=self._timeout,
                # Almanac never redirects, and a key must be sent to one host only.
                allow_redirects=False,
            )
        except NO_ANSWER as error:
            raise Unavailable(f"{call} got no answer: {type(error).__name__}") from error
        reply_body = _object(answer)
        if answer.status_code not in (200, 201):
            raise error_of(answer.status_code, answer.headers, reply_body, call)
        if reply_body is None:
            raise Unreadable(f"{call} was answered by something that is not Almanac", status=200)
        return Reply(reply_body, answer.headers)


def path(template: str, *names: str) -> str:
    """A path with ids in place of each ``{}``.

    :raise ValueError: for an id that would change the path
    """
    for name in names:
        if name in ("", ".", ".."):
            raise ValueError(f"an id is not {name!r}")
    return template.format(*(quote(name, safe="") for name in names))


def _wait(error: RequestFailed, attempt: int) -> float | None:
    """Seconds until the next attempt; None when the request is not retried."""
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= LONGEST_WAIT else None
    # Random, so that clients that failed together do not retry together.
    return FIRST_WAIT * 2.0**attempt * random.uniform(1.0, 2.0)


def _object(answer: requests.Response) -> dict[str, Any] | None:
    try:
        found = answer.json()
    except requests.exceptions.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and "data" in found else None
