"""The content of a conversation, by the pedantic reader: the periods of each calendar, or garbage."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from tests.fuzz import strict
from tests.fuzz.conversations import Conversation, asked_of
from tests.fuzz.strict import Garbage, Period

# For each requested calendar; None where the answer is doubtful.
Claims = dict[str, list[Period] | None]


def claims(conversation: Conversation, provider: str, calendars: list[str]) -> Claims:
    """The claims about each calendar in a conversation about busy periods, or about events."""
    if provider == "microsoft":
        return _graph(conversation, calendars)
    if conversation.operation == "events":
        return {each: _google_events(conversation, each) for each in calendars}
    ((_, status, content),) = conversation.answers.values()
    return {each: _busy(status, content, each) for each in calendars}


def _busy(status: int, content: bytes, calendar: str) -> list[Period] | None:
    try:
        return strict.free_busy(content, calendar) if status == 200 else None
    except Garbage:
        return None


def _google_events(conversation: Conversation, calendar: str) -> list[Period] | None:
    for asked, status, content in conversation.answers.values():
        if unquote(urlsplit(asked.url).path).endswith(f"/calendars/{calendar}/events"):
            try:
                return strict.google_events(content) if status == 200 else None
            except Garbage:
                return None
    return None


def _graph(conversation: Conversation, calendars: list[str]) -> Claims:
    pages: dict[str, dict[str, object]] = {}
    for asked, status, content in conversation.answers.values():
        try:
            if status == 200:
                pages |= strict.parts(asked_of(asked), content)
        except Garbage:
            return dict.fromkeys(calendars)
    return {each: _graph_one(conversation, pages, each) for each in calendars}


def _zone(conversation: Conversation, pages: dict[str, dict[str, object]]) -> str:
    """That of the mailbox. An event has to begin at some time: in a list of them it is then UTC's."""
    try:
        return strict.mailbox_zone(pages.get("/me/mailboxSettings", {}))
    except Garbage:
        if conversation.operation == "events":
            return "UTC"
        raise


def _graph_one(
    conversation: Conversation, pages: dict[str, dict[str, object]], calendar: str
) -> list[Period] | None:
    name = "/me/calendar/" if calendar == "primary" else f"/me/calendars/{calendar}/"
    paths = [path for path in pages if unquote(path).startswith(name)]
    read = strict.graph_events if conversation.operation == "events" else strict.graph_busy
    try:
        zone = _zone(conversation, pages)
        # The path of the next page, from the link at the end of a page.
        found: list[Period] = []
        path = next((each for each in paths if "skip" not in each.lower()), None)
        strict.need(path)
        while path is not None:
            page = pages.get(path)
            strict.need(page)
            assert page is not None
            found += read(page, zone)
            link = page.get("@odata.nextLink")
            strict.need(link is None or (isinstance(link, str) and "@odata.nextLink" in page))
            path = None if link is None else next((each for each in paths if str(link).endswith(each)), "")
        return found
    except Garbage:
        return None
