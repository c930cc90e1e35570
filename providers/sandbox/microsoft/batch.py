"""Several calls in one: ``$batch``.

https://learn.microsoft.com/graph/json-batching
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from providers.sandbox.calls import Call
from providers.sandbox.exchange import BROKEN, BROKEN_PART, SECOND_REPLY, Answer, Request
from providers.sandbox.microsoft.errors import error, refusal

MAX_PARTS = 20
# Concurrent parts of one mailbox: https://learn.microsoft.com/graph/throttling-limits
LANES = 4
FAILED_DEPENDENCY = 424


@dataclass(slots=True)
class Part:
    """One call of a batch and, once it has run, its answer and when that was ready (seconds)."""

    id: str
    needs: list[str]
    request: Request
    answer: Answer | None = None
    ready: float = 0.0


def run(call: Call, respond: Callable[[Call, Request], Answer]) -> Answer:
    """Run the parts in the order of their dependencies; the answer comes when the slowest is ready."""
    parts = {part.id.lower(): part for part in read(call)}
    lanes: dict[str, list[float]] = {}
    waiting = list(parts.values())
    while waiting:
        runnable = next((part for part in waiting if all(parts[n].answer for n in part.needs)), None)
        if runnable is None:
            raise refusal("BadRequest", "The requests depend on each other in a circle.")
        waiting.remove(runnable)
        needed = [parts[name] for name in runnable.needs]
        if any(part.answer and part.answer.status >= 400 for part in needed):
            runnable.answer = error(
                "FailedDependency", "A request it depends on failed.", status=FAILED_DEPENDENCY
            )
            continue
        runnable.answer = respond(call, runnable.request)
        own = lanes.setdefault(mailbox_of(runnable.request), [0.0] * LANES)
        lane = own.index(min(own))
        began = max([own[lane], *(part.ready for part in needed)])
        own[lane] = runnable.ready = began + runnable.answer.delay
    answers = [answered(part) for part in parts.values()]
    # Answers may come in any order; this one always differs from that of the requests.
    shuffled = answers[1::2] + answers[::2][::-1]
    shuffled += [emptied(part) for part in parts.values() if has(part, SECOND_REPLY)]
    damage = frozenset[str]().union(*(part.answer.damage for part in parts.values() if part.answer))
    return Answer(
        200,
        body=joined(shuffled, {part.id for part in parts.values() if has(part, BROKEN_PART)}),
        damage=damage - {BROKEN_PART, SECOND_REPLY},
        headers={"Content-Type": "application/json"},
        delay=max(part.ready for part in parts.values()),
        # An answer is truncated or lost as a whole.
        wreck=next((part.answer.wreck for part in parts.values() if part.answer and part.answer.wreck), None),
    )


def has(part: Part, damage: str) -> bool:
    """Whether the answer to a part has this damage."""
    return part.answer is not None and damage in part.answer.damage


def emptied(part: Part) -> dict[str, Any]:
    """A second answer to a part: a list without entries."""
    return {"id": part.id, "status": 200, "body": {"value": []}}


def joined(answers: list[dict[str, Any]], broken: set[str]) -> bytes:
    """The JSON of the batch; the bodies of broken parts are no JSON."""
    if not broken:
        return orjson.dumps({"responses": answers})
    texts = [
        orjson.dumps(each | {"body": 0})[:-2] + BROKEN + b"}" if each["id"] in broken else orjson.dumps(each)
        for each in answers
    ]
    return b'{"responses":[' + b",".join(texts) + b"]}"


def mailbox_of(request: Request) -> str:
    """The mailbox that a part reads; parts of one mailbox wait for each other."""
    path = request.path[2:]
    return path[1].lower() if len(path) > 1 and path[0].lower() == "users" else ""


def read(call: Call) -> list[Part]:
    """The parts as they were posted.

    :raise Refused: if the batch as a whole is unreadable
    """
    try:
        posted = call.json()["requests"]
        parts = [part(call, entry) for entry in posted]
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise refusal("BadRequest", "Invalid batch payload format.") from problem
    if len(parts) > MAX_PARTS:
        raise refusal(
            "BadRequest", f"Number of batch request steps exceeds the maximum value of {MAX_PARTS}."
        )
    ids = {part.id.lower() for part in parts}
    if not parts or len(ids) < len(parts):
        raise refusal("BadRequest", "The ids of the requests are missing or not unique.")
    if any(name not in ids for part in parts for name in part.needs):
        raise refusal("BadRequest", "A request depends on one that is not there.")
    return parts


def part(call: Call, entry: dict[str, Any]) -> Part:
    headers = {name.lower(): str(value) for name, value in (entry.get("headers") or {}).items()}
    body = entry.get("body")
    if body is not None and "content-type" not in headers:
        raise refusal(
            "BadRequest", f"Write request id : {entry['id']} does not contain Content-Type header or body."
        )
    url = entry["url"]
    if url.startswith("http"):
        raise refusal("BadRequest", f"The url of request {entry['id']} is not relative.")
    request = Request(
        entry["method"].upper(),
        "/microsoft/v1.0/" + url.lstrip("/"),
        headers | {"host": call.request.headers.get("host", "")},
        b"" if body is None else orjson.dumps(body),
    )
    return Part(str(entry["id"]), [str(name).lower() for name in entry.get("dependsOn") or ()], request)


def answered(part: Part) -> dict[str, Any]:
    """A part's answer inside the batch's."""
    answer = part.answer
    assert answer is not None
    content = answer.document
    if content is None and answer.body:
        content = answer.body.decode()
    return {"id": part.id, "status": answer.status, "headers": answer.headers, "body": content}
