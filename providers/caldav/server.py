"""The calls to a CalDAV server during one operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from providers.caldav import xml
from providers.caldav.errors import PROVIDER, Redirected, error_for, write_error_for
from providers.caldav.xml import Element, Resource
from providers.errors import AddressNotPublic, NotFound, ProviderError
from providers.event_writes import with_outcome
from providers.http import ssrf_guard
from providers.http.calls import Bearer, Call, Json, Reach, unreadable
from providers.http.send import send
from providers.http.ssrf_guard import ForbiddenUrl
from providers.scopes import Operation

XML = "application/xml; charset=utf-8"
CALENDAR = "text/calendar; charset=utf-8"

# Of one answer, unpacked.
MAX_BYTES = 10 * 1024 * 1024
# A well-known address redirects once or twice.
MAX_REDIRECTS = 5


@dataclass(frozen=True, slots=True)
class Server:
    """Calls with the credentials of one account.

    Redirects are followed for reads. ``allow_private``: the operator allows addresses of its own network, and
    HTTP without TLS.
    """

    bearer: Bearer
    operation: Operation
    deadline: float
    allow_private: bool

    def until(self, deadline: float) -> Server:
        """The same with another deadline."""
        return Server(self.bearer, self.operation, deadline, self.allow_private)

    def find(self, url: str, names: Sequence[str], *, depth: int = 0) -> list[Resource]:
        """The properties of a resource, and with ``depth`` 1 those of its members (RFC 4918, 9.1).

        :raise Unreadable: when the answer is no multistatus
        """
        return self._multistatus("PROPFIND", url, xml.propfind(names), depth)[0]

    def one(self, url: str, names: Sequence[str]) -> Resource:
        """The properties of one resource.

        :raise NotFound: when the answer says that there is none
        """
        found = self.find(url, names)
        if len(found) != 1:
            raise unreadable(PROVIDER, self.operation)
        if not found[0].ok:
            raise NotFound(f"{PROVIDER} does not know this calendar", operation=self.operation)
        return found[0]

    def report(self, url: str, body: bytes) -> list[Resource]:
        """The members of a collection that a report finds (RFC 3253, 3.6).

        :raise Unreadable: when the answer is no multistatus
        """
        return self._multistatus("REPORT", url, body, 1)[0]

    def changed(self, url: str, sync_token: str) -> tuple[list[Resource], str]:
        """The members of a collection that have changed, and the next sync token (RFC 6578, 3).

        :raise SyncTokenExpired: when the server does not know the token
        :raise Unreadable: when the answer is no multistatus, or has no token
        """
        found, root = self._multistatus("REPORT", url, xml.changes_since(sync_token), 0)
        token = (root.findtext(f"{xml.DAV}sync-token") or "").strip()
        if not token:
            raise unreadable(PROVIDER, self.operation)
        return found, token

    def put(self, url: str, text: str, condition: Mapping[str, str]) -> None:
        """Write an event.

        :raise Conflict: when ``condition`` does not hold
        :raise UidConflict, EventRefused: see :func:`write_error_for`
        :raise OutcomeUnknown: when the server may have executed it
        """
        self._write("PUT", url, text.encode(), condition)

    def delete(self, url: str, condition: Mapping[str, str]) -> None:
        """Delete an event.

        :raise Conflict: when ``condition`` does not hold
        :raise NotFound: when there is none
        """
        self._write("DELETE", url, None, condition)

    def _multistatus(self, method: str, url: str, body: bytes, depth: int) -> tuple[list[Resource], Element]:
        """The responses of a multistatus, and its root."""
        headers = {"Depth": str(depth), "Accept": "application/xml, text/xml"}
        for _ in range(MAX_REDIRECTS):
            self._check(url)
            call = self._call(method, url, body, XML, headers)
            try:
                answer = send(call, error_for, deadline=self.deadline, bearer=self.bearer)
            except Redirected as moved:
                url = self._target(url, moved)
                continue
            root = answer.get("root")
            found = xml.resources(root, url)
            if root is None or found is None:
                raise unreadable(PROVIDER, self.operation)
            return found, root
        raise ProviderError(f"{PROVIDER} redirects without an end", operation=self.operation)

    def _target(self, url: str, moved: Redirected) -> str:
        """Where a redirect leads. It gets the password too, so it may not lead from TLS to plain HTTP."""
        try:
            target = xml.joined(url, urljoin(url, moved.location))
        except ValueError:
            raise unreadable(PROVIDER, self.operation) from None
        if urlsplit(url).scheme == "https" and urlsplit(target).scheme != "https":
            raise AddressNotPublic(
                f"{PROVIDER} redirects to a connection without TLS", operation=self.operation
            )
        return target

    def _write(self, method: str, url: str, body: bytes | None, condition: Mapping[str, str]) -> Json:
        self._check(url)
        call = self._call(method, url, body, CALENDAR, condition)
        try:
            return send(call, write_error_for, deadline=self.deadline, bearer=self.bearer)
        except ProviderError as error:
            raise with_outcome(error) from None

    def _check(self, url: str) -> None:
        try:
            ssrf_guard.parse(url, allow_private=self.allow_private)
        except ForbiddenUrl as error:
            message = f"The address that {PROVIDER} gave {error}"
            raise AddressNotPublic(message, operation=self.operation) from None

    def _call(
        self, method: str, url: str, body: bytes | None, content_type: str, headers: Mapping[str, str]
    ) -> Call:
        return Call(
            PROVIDER,
            self.operation,
            method,
            url,
            body,
            content_type,
            headers=headers,
            decode=xml.decode,
            scheme="Basic",
            reach=Reach.ANY if self.allow_private else Reach.PUBLIC,
            max_bytes=MAX_BYTES,
        )
