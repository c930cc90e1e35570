"""Answers of kinds that real providers send and their documentation does not mention.

A fault with ``wild`` changes the answers of the calls that it applies to:

- ``brokenPart``: the body of a part of a ``$batch`` is no JSON. The same call by itself is answered as usual.
- ``secondReply``: a ``$batch`` answers a part twice, the second time with an empty list.
- ``refusedPart``: 401, with a token that is valid for every other call.
- ``loneSurrogate``: titles and names contain half of an emoji.
- ``byteOrderMark``: the JSON follows a byte order mark.
- ``oddEvent``: lists of events end with two that have no id, one of which states no time and is free.
- ``duplicate``: lists end with their last entry a second time.
- ``noZone``: the settings of a mailbox have no time zone.
- ``otherSignIn``: the mailbox has another address than the one with which the person signs in.
- ``unknownQuota``: Google refuses the call with a limit that is not documented.
- ``hiddenMain``: the person has hidden the main calendar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from providers.sandbox.exchange import OF_BYTES, Answer, Request

Json = dict[str, Any]

REFUSED_PART, UNKNOWN_QUOTA = "refusedPart", "unknownQuota"
# What Google's word for an undocumented limit may be.
QUOTA_REASON = "variableTermLimitExceeded"

# Before every range that anybody asks for, so that these events change no busy time.
EARLIER, LATER = "1990-01-02T10:00:00", "1990-01-02T11:00:00"


def changed(kind: str, answer: Answer, request: Request, email: str) -> Answer:
    """The answer of a call for the account ``email``, changed as a fault of this kind says."""
    if kind in OF_BYTES:
        answer.damage |= {kind}
    elif kind in CHANGES and answer.status == 200 and isinstance(answer.document, dict):
        CHANGES[kind](answer, request, email)
    return answer


def _duplicate(answer: Answer, _request: Request, _email: str) -> None:
    for name in ("value", "items"):
        entries = answer.document.get(name)
        if isinstance(entries, list):
            answer.document[name] = [*entries, *entries[-1:]]


def _odd_events(answer: Answer, request: Request, _email: str) -> None:
    document = answer.document
    if "calendarview" in request.target.lower():
        start, end = ({"dateTime": each, "timeZone": "UTC"} for each in (EARLIER, LATER))
        document["value"] = [
            *document["value"],
            {"id": "", "start": start, "end": end, "isAllDay": False, "showAs": "busy"},
            {"id": "", "start": None, "end": None, "isAllDay": False, "showAs": "free"},
        ]
    elif document.get("kind") == "calendar#events":
        times = {"start": {"dateTime": f"{EARLIER}Z"}, "end": {"dateTime": f"{LATER}Z"}}
        odd = {"id": "", "status": "confirmed", **times}
        document["items"] = [*document["items"], odd, {"status": "confirmed"}]


def _without_zone(answer: Answer, request: Request, _email: str) -> None:
    if "mailboxsettings" in request.target.lower():
        answer.document.pop("timeZone", None)


def _other_sign_in(answer: Answer, _request: Request, email: str) -> None:
    answer.document = _renamed(answer.document, email.lower())


def _renamed(value: Any, email: str) -> Any:
    match value:
        case dict():
            return {name: _renamed(each, email) for name, each in value.items()}
        case list():
            return [_renamed(each, email) for each in value]
        case str() if value.lower() == email:
            return f"mailbox.of.{value}"
    return value


def _hidden_main(answer: Answer, request: Request, _email: str) -> None:
    if answer.document.get("kind") != "calendar#calendarList":
        return
    if request.flag("showHidden"):
        for each in answer.document["items"]:
            if each.get("primary"):
                each["hidden"] = True
    else:
        answer.document["items"] = [each for each in answer.document["items"] if not each.get("primary")]


CHANGES: dict[str, Callable[[Answer, Request, str], None]] = {
    "duplicate": _duplicate,
    "oddEvent": _odd_events,
    "noZone": _without_zone,
    "otherSignIn": _other_sign_in,
    "hiddenMain": _hidden_main,
}
KINDS = (*sorted(OF_BYTES), REFUSED_PART, UNKNOWN_QUOTA, *CHANGES)
