"""One conditional request to a feed; https://www.rfc-editor.org/rfc/rfc9110#section-13."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urljoin

from providers.base import Account
from providers.errors import AddressNotPublic, AuthorizationInvalid, NotFound, ProviderError
from providers.http import errors
from providers.http.calls import Call, HttpReply, Json, Reach, unreadable
from providers.http.send import exchange
from providers.http.ssrf_guard import ForbiddenUrl
from providers.ics import address
from providers.scopes import Operation

# The name of a feed in messages.
PROVIDER = "The calendar feed"
# An address that is moved, then one for a file.
MAX_REDIRECTS = 5

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_REFUSALS: dict[int, errors.Refusal] = {
    401: (AuthorizationInvalid, "asks for a password, so its address is no longer enough"),
    404: (NotFound, "is not at its address any more"),
    410: (NotFound, "is not at its address any more"),
}


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a feed, and the validators that make the next request conditional."""

    body: bytes
    validators: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Moved:
    location: str


def fetch(
    url: str,
    validators: Mapping[str, str],
    account: Account | None,
    operation: Operation,
    *,
    allow_private: bool,
    max_bytes: int,
    deadline: float,
) -> Content | None:
    """The content of a feed; None when it has not changed since ``validators`` were given.

    Redirects are followed to addresses that may be called.

    :raise AddressNotPublic: when an address may not be called
    :raise AnswerTooLarge: when the content is longer than ``max_bytes``, unpacked
    :raise ProviderError: when the feed cannot be read
    """
    headers = {"Accept": "text/calendar, text/plain;q=0.5, */*;q=0.1", **validators}
    for _ in range(MAX_REDIRECTS + 1):
        call = Call(
            PROVIDER,
            operation,
            "GET",
            url,
            headers=headers,
            decode=_content,
            reach=Reach.ANY if allow_private else Reach.PUBLIC,
            max_bytes=max_bytes,
        )
        found = exchange(call, lambda reply: _read(reply, validators), deadline=deadline, account=account)
        if not isinstance(found, _Moved):
            return found
        if account is not None:
            # The grace is for the first answer.
            account = replace(account, grace=0.0)
        try:
            url = address.of_feed(urljoin(url, found.location), allow_private=allow_private)
        except (ForbiddenUrl, ValueError):
            message = f"{PROVIDER} redirects to an address that this service does not call"
            raise AddressNotPublic(message, operation=operation) from None
    raise ProviderError(f"{PROVIDER} redirects without an end", operation=operation)


def _content(content: bytes) -> Json:
    return {"content": content}


def _read(reply: HttpReply, sent: Mapping[str, str]) -> Content | _Moved | None:
    if reply.status in _REDIRECTS and reply.location:
        return _Moved(reply.location)
    if reply.status == 304 and sent:
        return None
    if reply.status != 200 or reply.body is None:
        if reply.status in (204, 206, 304):
            raise unreadable(PROVIDER, reply.operation)
        refusal = _REFUSALS.get(reply.status) or errors.by_status(reply.status)
        raise errors.error(PROVIDER, refusal, operation=reply.operation, retry_after=reply.retry_after)
    given = (("ETag", "If-None-Match"), ("Last-Modified", "If-Modified-Since"))
    validators = {name: value for header, name in given if (value := reply.headers.get(header))}
    return Content(reply.body["content"], validators)
