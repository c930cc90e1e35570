"""Finds the account and its calendars behind an address that a person has entered.

The address is that of a host, of an account (a principal), or of one calendar. The way from it: the
well-known address (RFC 6764, 5), the account that is signed in (RFC 5397), its calendar homes (RFC 4791,
6.2.1). Servers are not looked up in the DNS (RFC 6764, 3): the services that have such records are presets
with their address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urljoin, urlsplit

import msgspec

from providers.caldav import calendars, identifiers
from providers.caldav.credentials import BasicCredentials
from providers.caldav.errors import PROVIDER
from providers.caldav.server import Server
from providers.caldav.xml import CALDAV, DAV, Resource, joined
from providers.errors import (
    AddressNotPublic,
    AuthorizationInvalid,
    FieldRefused,
    ProviderError,
    RateLimited,
    Unavailable,
    UnknownHost,
    Unreadable,
)
from providers.http import ssrf_guard
from providers.http.ssrf_guard import ForbiddenUrl
from providers.scopes import Operation

WELL_KNOWN = "/.well-known/caldav"

_ACCOUNT = (f"{DAV}current-user-principal", f"{DAV}resourcetype", f"{DAV}getcontenttype")
_HOMES = f"{CALDAV}calendar-home-set"
_ADDRESSES = f"{CALDAV}calendar-user-address-set"
_INBOX = f"{CALDAV}schedule-inbox-URL"
# RFC 6638, 9.2 defines it for the inbox; some servers give it with the account too.
_DEFAULT = f"{CALDAV}schedule-default-calendar-URL"


def address(entered: str, *, allow_private: bool) -> str:
    """The complete address of what a person has entered, with ``https`` if it names no scheme.

    :raise FieldRefused: when it is none, or one that must not be called
    """
    text = entered.strip()
    whole = text if "://" in text else f"https://{text}"
    try:
        ssrf_guard.parse(whole, allow_private=allow_private)
        return joined(whole, "")
    except ForbiddenUrl as error:
        raise FieldRefused("url", str(error)) from None
    except ValueError:
        raise FieldRefused("url", "must be an https URL") from None


def discover(
    server: Server,
    url: str,
    username: str,
    password: str,
    main_calendars: Mapping[str, str],
    *,
    reconnects: str | None = None,
) -> tuple[BasicCredentials, Resource]:
    """The credentials to store for the account behind an address, and its main calendar.

    ``main_calendars`` and ``reconnects`` are about connected accounts, see ``Form.open``.

    :raise AuthorizationInvalid: when the server does not accept user name and password
    :raise FieldRefused: when there is no calendar behind the address
    """
    try:
        return _discover(server, url, username, password, main_calendars, reconnects)
    except AddressNotPublic as error:
        message = f"must not lead to a private or loopback address, or away from TLS. {error.message}"
        raise FieldRefused("url", message) from None
    except UnknownHost:
        raise FieldRefused("url", "names a host that was not found: check the spelling") from None


def _discover(
    server: Server,
    url: str,
    username: str,
    password: str,
    main_calendars: Mapping[str, str],
    reconnects: str | None,
) -> tuple[BasicCredentials, Resource]:
    found = _signed_in(server, url)
    principal = found.urls(f"{DAV}current-user-principal")[0]
    account = server.one(principal, (_HOMES, _ADDRESSES, _INBOX, _DEFAULT))
    homes = _at_one_host(account.urls(_HOMES))
    if not homes:
        raise FieldRefused("url", "leads to an account without calendars")
    known = BasicCredentials(
        url=url,
        username=username,
        password=password,
        principal=principal,
        homes=homes,
        main="",
        calendar=found.url if calendars.holds_events(_with_kinds(server, found)) else None,
        addresses=_addresses(account, username),
    )
    if known.calendar and urlsplit(known.calendar).netloc != urlsplit(homes[0]).netloc:
        raise FieldRefused("url", "leads to a calendar at another host than those of its account")
    if reconnects is not None and not _may_be(known.account_id, reconnects):
        raise FieldRefused(
            "url", "leads, with this user name, to another account: connect it beside this one"
        )
    so_far = main_calendars.get(known.account_id) or main_calendars.get(reconnects or "")
    listed = collections(server, known)
    if known.calendar is None and _is_in_account(url, known):
        places = ", ".join(urlsplit(each.url).path for each in listed) or "none"
        raise FieldRefused("url", f"leads to no calendar for events. Those of the account are at: {places}")
    main = calendars.main_of(listed, _wanted(server, account, known, so_far), principal)
    if main is None:
        raise FieldRefused("url", "leads to an account without a calendar that can be read")
    return msgspec.structs.replace(known, main=main.url), main


def _may_be(account_id: str, connected: str) -> bool:
    """Whether an account may be a connected one: it is, or has its path at another host.

    One server may have several names, and another server the same path, so only a person can say.
    """
    return urlsplit(account_id).path == urlsplit(connected).path


def _is_in_account(url: str, known: BasicCredentials) -> bool:
    """Whether an address is inside a home of calendars, and so that of a calendar that is not there."""
    path = urlsplit(url).path.rstrip("/")
    homes = (urlsplit(each).path.rstrip("/") for each in known.homes)
    inside = any(home and path.startswith(f"{home}/") for home in homes)
    return inside and not calendars.is_same(url, known.principal)


def collections(server: Server, known: BasicCredentials) -> list[Resource]:
    """The calendars of an account for events, by their paths."""
    found = [each for home in known.homes for each in server.find(home, calendars.PROPERTIES, depth=1)]
    if known.calendar and not any(calendars.is_same(each.url, known.calendar) for each in found):
        # Another account shares it, so it is not in the homes.
        found += server.find(known.calendar, calendars.PROPERTIES)
    return calendars.in_order(found)


def _signed_in(server: Server, url: str) -> Resource:
    """The first resource that names the account which is signed in.

    :raise FieldRefused: when none does
    """
    unavailable: ProviderError | None = None
    for each in _candidates(url):
        try:
            found = server.one(each, _ACCOUNT)
        except (AuthorizationInvalid, AddressNotPublic, RateLimited):
            raise
        except Unreadable:
            # A page, for example one to sign in.
            continue
        except Unavailable as error:
            unavailable = unavailable or error
            continue
        except ProviderError:
            continue
        if _is_event(found):
            raise FieldRefused(
                "url", "is the address of a single event: enter that of the server or a calendar"
            )
        if found.urls(f"{DAV}current-user-principal"):
            return found
    if unavailable is not None:
        raise unavailable
    raise FieldRefused("url", f"leads to no {PROVIDER} server: there is no calendar behind it")


def _candidates(url: str) -> Iterator[str]:
    """The address itself, unless it is only a host, then the well-known one and the root of the host."""
    if urlsplit(url).path not in ("", "/"):
        yield url
    yield urljoin(url, WELL_KNOWN)
    yield urljoin(url, "/")


def _is_event(found: Resource) -> bool:
    kind = found.text(f"{DAV}getcontenttype").lower()
    return kind.startswith("text/calendar") and not found.children(f"{DAV}resourcetype")


def _with_kinds(server: Server, found: Resource) -> Resource:
    """A calendar with the properties that say what it holds; any other resource as it is."""
    if f"{CALDAV}calendar" not in found.children(f"{DAV}resourcetype"):
        return found
    return server.one(found.url, calendars.PROPERTIES)


def _at_one_host(homes: tuple[str, ...]) -> tuple[str, ...]:
    """The homes at the host of the first: ids of calendars are paths at one host."""
    return tuple(each for each in homes if urlsplit(each)[:2] == urlsplit(homes[0])[:2])


def _addresses(account: Resource, username: str) -> tuple[str, ...]:
    """The e-mail addresses of an account, the one that its server prefers first (RFC 6638, 2.4.1)."""
    found = account.properties.get(_ADDRESSES)
    hrefs = [] if found is None else list(found.iter(f"{DAV}href"))
    hrefs.sort(key=lambda each: each.get("preferred") != "1")
    mails = [
        text[len("mailto:") :]
        for each in hrefs
        if (text := (each.text or "").strip()).lower().startswith("mailto:") and "@" in text
    ]
    return tuple(dict.fromkeys([*mails, *([username] if "@" in username else [])]))


def _wanted(server: Server, account: Resource, known: BasicCredentials, so_far: str | None) -> Iterator[str]:
    """Candidates for the main calendar: the one that the address named, that so far, the server's default."""
    if known.calendar:
        yield known.calendar
    if so_far is not None:
        yield identifiers.calendar_url(so_far, known, Operation.LIST_CALENDARS)
    yield from account.urls(_DEFAULT)
    for inbox in account.urls(_INBOX):
        try:
            yield from server.one(inbox, (_DEFAULT,)).urls(_DEFAULT)
        except (AuthorizationInvalid, Unavailable):
            raise
        except ProviderError:
            # A server without scheduling may name an inbox that does not exist.
            continue
