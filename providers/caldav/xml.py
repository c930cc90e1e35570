"""The XML of WebDAV: requests, and answers with several statuses. Pure functions.

Servers are addresses that a person has entered, so an answer may be anything. A document with a DTD is
refused, and with it every entity. Its size, depth and number of elements are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit
from xml.etree import ElementTree  # Elements only; the parser is that of defusedxml.
from xml.etree.ElementTree import SubElement, TreeBuilder

from defusedxml.ElementTree import DefusedXMLParser

from providers.http.calls import Json

Element = ElementTree.Element

DAV = "{DAV:}"
CALDAV = "{urn:ietf:params:xml:ns:caldav}"
APPLE = "{http://apple.com/ns/ical/}"

for prefix, namespace in (("d", DAV), ("c", CALDAV), ("a", APPLE)):
    ElementTree.register_namespace(prefix, namespace[1:-1])

# A response has about eight elements, and is nested six deep. An element takes about 200 bytes of memory.
MAX_ELEMENTS = 200_000
MAX_DEPTH = 64

# "HTTP/1.1 200 OK" (RFC 4918, 14.28)
_STATUS = re.compile(r"\s*HTTP/[0-9.]+\s+([0-9]{3})\b")
# What XML 1.0 cannot express, not even as a reference.
UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Characters of an address that are not quoted again; servers write some of the others as they are.
_QUOTED = "/:@!$&'()*+,;=~%[]"


@dataclass(frozen=True, slots=True)
class Resource:
    """One response of a multistatus: the properties that the server gave, and the statuses of the others.

    ``url`` is complete. ``status`` is that of the resource as a whole, 200 when it has none of its own.
    """

    url: str
    status: int
    properties: Mapping[str, Element]
    refused: Mapping[str, int]

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def text(self, name: str) -> str:
        """The text of a property, empty if the server gave none."""
        found = self.properties.get(name)
        return "" if found is None else (found.text or "").strip()

    def urls(self, name: str) -> tuple[str, ...]:
        """The addresses in a property, complete. Other texts, such as ``urn:uuid:1234``, are left out."""
        found = self.properties.get(name)
        hrefs = () if found is None else found.iter(f"{DAV}href")
        return tuple(self._joined(each.text for each in hrefs if each.text and each.text.strip()))

    def _joined(self, hrefs: Iterable[str]) -> Iterator[str]:
        for each in hrefs:
            with suppress(ValueError):
                yield joined(self.url, each)

    def children(self, name: str) -> frozenset[str]:
        """The names of the elements in a property, such as those of ``resourcetype``."""
        found = self.properties.get(name)
        return frozenset() if found is None else frozenset(each.tag for each in found)


class _Bounded(TreeBuilder):
    """Builds elements up to the bounds."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = self._count = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH or self._count > MAX_ELEMENTS:
            raise ValueError("too many elements")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag)


def parse(content: bytes) -> Element | None:
    """The root of a document; None for anything that is not XML within the bounds, and for a DTD."""
    parser = DefusedXMLParser(target=_Bounded(), forbid_dtd=True)
    try:
        parser.feed(content)
        root = parser.close()
    except (SyntaxError, ValueError, LookupError, AssertionError):
        # ``ParseError`` is a ``SyntaxError``. LookupError: an encoding that Python does not know.
        return None
    return root if isinstance(root, Element) else None


def decode(content: bytes) -> Json:
    """An answer as a JSON object: ``root`` is that of its XML, absent if it has none."""
    root = parse(content) if content.lstrip()[:1] in (b"<", b"\xef", b"\xff", b"\xfe") else None
    return {} if root is None else {"root": root}


def resources(root: Element | None, url: str) -> list[Resource] | None:
    """The responses of a multistatus to a request to ``url``; None for anything else.

    A response that cannot be parsed makes the whole answer unreadable: its resource may be an event.
    """
    if root is None or root.tag != f"{DAV}multistatus":
        return None
    try:
        return [each for response in root.findall(f"{DAV}response") for each in _resources(response, url)]
    except ValueError:
        return None


def preconditions(root: Element | None) -> frozenset[str]:
    """The names of the preconditions that a refused request has violated (RFC 4918, 16)."""
    return frozenset() if root is None or root.tag != f"{DAV}error" else frozenset(each.tag for each in root)


def _resources(response: Element, url: str) -> list[Resource]:
    """The resources of one response.

    Several may share a status; one with properties has an address of its own (RFC 4918, 14.24).
    """
    hrefs = [(each.text or "").strip() for each in response.findall(f"{DAV}href")]
    parts = response.findall(f"{DAV}propstat")
    if not hrefs or not all(hrefs) or (parts and len(hrefs) > 1):
        raise ValueError("a response without an address of its own")
    own = response.find(f"{DAV}status")
    given: dict[str, Element] = {}
    refused: dict[str, int] = {}
    for part in parts:
        status = _status(part.find(f"{DAV}status"))
        for holder in part.findall(f"{DAV}prop"):
            for each in holder:
                if each.tag in given:
                    raise ValueError("a property that is given twice")
                if 200 <= status < 300:
                    given[each.tag] = each
                else:
                    refused[each.tag] = status
    if own is None and not parts:
        raise ValueError("a response without a status")
    status = 200 if own is None else _status(own)
    return [Resource(joined(url, href), status, given, refused) for href in hrefs]


def _status(element: Element | None) -> int:
    found = _STATUS.match((element.text or "") if element is not None else "")
    if found is None:
        raise ValueError("no status")
    return int(found[1])


def joined(base: str, href: str) -> str:
    """The complete address of ``href``, quoted, in one spelling.

    :raise ValueError: for a text that cannot be an address
    """
    whole = urljoin(base, quote(href.strip(), safe=_QUOTED + "?"))
    parts = urlsplit(whole)
    port = parts.port
    default = {"http": 80, "https": 443}.get(parts.scheme)
    host = (parts.hostname or "").lower()
    if not host or default is None:
        raise ValueError("no address")
    host = f"[{host}]" if ":" in host else host
    authority = host if port in (None, default) else f"{host}:{port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{authority}{parts.path or '/'}{query}"


def propfind(names: Sequence[str]) -> bytes:
    """The body of a PROPFIND for some properties."""
    root = Element(f"{DAV}propfind")
    _properties(root, names)
    return written(root)


def multiget(*paths: str) -> bytes:
    """The body of a REPORT for events by their paths (RFC 4791, 7.9)."""
    root = Element(f"{CALDAV}calendar-multiget")
    _properties(root, (f"{DAV}getetag", f"{CALDAV}calendar-data"))
    for each in paths:
        SubElement(root, f"{DAV}href").text = each
    return written(root)


def changes_since(sync_token: str) -> bytes:
    """The body of a REPORT for the changes in a collection (RFC 6578, 3.2)."""
    root = Element(f"{DAV}sync-collection")
    SubElement(root, f"{DAV}sync-token").text = sync_token
    SubElement(root, f"{DAV}sync-level").text = "1"
    _properties(root, (f"{DAV}getetag",))
    return written(root)


def events_between(start: str, end: str) -> bytes:
    """The body of a REPORT for the events of a time (RFC 4791, 7.8).

    ``start`` and ``end`` are in the form ``20261120T090000Z``.
    """
    root, events = _query()
    SubElement(events, f"{CALDAV}time-range", {"start": start, "end": end})
    return written(root)


def events_with(name: str, value: str) -> bytes:
    """The body of a REPORT for the events with a property that contains ``value`` (RFC 4791, 9.7.2).

    ``i;octet`` is a comparison that every server has (RFC 4791, 7.5).
    """
    root, events = _query()
    found = SubElement(events, f"{CALDAV}prop-filter", {"name": name})
    SubElement(found, f"{CALDAV}text-match", {"collation": "i;octet"}).text = value
    return written(root)


def _query() -> tuple[Element, Element]:
    root = Element(f"{CALDAV}calendar-query")
    _properties(root, (f"{DAV}getetag", f"{CALDAV}calendar-data"))
    chosen = SubElement(root, f"{CALDAV}filter")
    whole = SubElement(chosen, f"{CALDAV}comp-filter", {"name": "VCALENDAR"})
    return root, SubElement(whole, f"{CALDAV}comp-filter", {"name": "VEVENT"})


def _properties(root: Element, names: Sequence[str]) -> None:
    wanted = SubElement(root, f"{DAV}prop")
    for each in names:
        SubElement(wanted, each)


def written(root: Element) -> bytes:
    """The bytes of a document."""
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text
