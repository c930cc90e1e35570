"""JSON batches: twenty parts in each, and an answer or an error for every part.

https://learn.microsoft.com/en-us/graph/json-batching
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from providers.errors import AccessDenied, AuthorizationInvalid, ProviderError, RateLimited, Unreadable
from providers.http.calls import (
    Bearer,
    Call,
    Decode,
    HttpReply,
    Json,
    json_object,
    token_refused_here,
    unreadable,
)
from providers.http.send import attempt, retry_after, seconds_before_retry, send
from providers.microsoft import PARTS_PER_BATCH
from providers.microsoft.errors import PROVIDER, error_for
from providers.microsoft.payloads import BatchPart

# Times in UTC, whatever the mailbox's own setting.
IN_UTC = 'outlook.timezone="UTC"'

# The answer to one part, or its failure.
Answer = Json | ProviderError

# The reply to one part, or the error of a part that was requested by itself and got none.
PartReply = HttpReply | ProviderError


@dataclass(frozen=True, slots=True)
class BatchGet:
    """One GET of a batch: ``id`` is the caller's, ``path`` begins with a slash below the base URL.

    ``prefer`` is the part's own header: headers of the batch do not apply to its parts.
    """

    id: str
    path: str
    prefer: str = IN_UTC


class Batches:
    """The batches of one operation, one at a time: a mailbox allows four concurrent calls.

    ``decode`` reads the answer to a batch.
    """

    def __init__(
        self, base: str, bearer: Bearer, operation: str, *, deadline: float, decode: Decode = json_object
    ) -> None:
        self.base = base
        self.operation = operation
        self._bearer = bearer
        self._deadline = deadline
        self._decode = decode
        self._answered = False
        self._part_answered = False
        # Graph's answer to a batch could not be parsed, so parts are requested one by one.
        self._singly = False

    def fetch(self, parts: Sequence[BatchGet]) -> dict[str, Answer]:
        """An answer or an error for every part, by its id.

        A failed batch fails its parts if an earlier batch was answered; otherwise its error is raised.

        :raise TokenRejected: when the token is rejected for every part, also after a refresh
        """
        answers: dict[str, Answer] = {}
        for first in range(0, len(parts), PARTS_PER_BATCH):
            answers |= self._settle(parts[first : first + PARTS_PER_BATCH])
        return answers

    def _settle(self, parts: Sequence[BatchGet]) -> dict[str, Answer]:
        """Send one batch, then retry those of its parts that may succeed."""
        answers: dict[str, Answer] = {}
        tries = 0
        while parts:
            tries += 1
            replies = self._exchange(parts)
            if isinstance(replies, ProviderError):
                return answers | {part.id: replies for part in parts}
            answers |= {part.id: self._answer(replies.get(part.id)) for part in parts}
            rejected = rejected_parts(parts, replies)
            if rejected and not self._renew(replies):
                answers |= {part.id: token_refused_here(PROVIDER, self.operation) for part in rejected}
                rejected = []
            parts = [*rejected, *self._again(parts, rejected, replies, answers, tries)]
        return answers

    def _exchange(self, parts: Sequence[BatchGet]) -> Mapping[str, PartReply] | ProviderError:
        """The replies to one batch, or its error; the error is raised if no batch was answered before."""
        try:
            replies = self._replies(parts)
        except (AuthorizationInvalid, Unreadable):
            raise
        except ProviderError as error:
            if not self._answered:
                raise
            return error
        self._answered = True
        if _proves_token(replies):
            self._bearer.accept()
        return replies

    def _replies(self, parts: Sequence[BatchGet]) -> Mapping[str, PartReply]:
        """The replies by part id; parts are requested one by one once a batch could not be parsed.

        One part can spoil the JSON of all: an array that is not closed, or HTML in the place of a body.
        """
        if not self._singly:
            try:
                return self._batched(parts)
            except Unreadable:
                self._singly = True
        return self._each_alone(parts)

    def _each_alone(self, parts: Sequence[BatchGet]) -> dict[str, PartReply]:
        """The replies to parts that are requested one after the other."""
        headers = correlation_header(self._bearer)
        replies: dict[str, PartReply] = {}
        for part in parts:
            call = Call(
                PROVIDER,
                self.operation,
                "GET",
                self.base + part.path,
                headers={"Prefer": part.prefer} | headers,
            )
            replies[part.id] = attempt(call, deadline=self._deadline, bearer=self._bearer)
        return replies

    def _renew(self, replies: Mapping[str, PartReply]) -> bool:
        """Replace the token that parts were answered with 401. Returns whether they may then be sent again.

        They may not if another part was answered: its token is valid, and they are refused for themselves.

        :raise TokenRejected: when the token itself came from a refresh, and no part was ever answered
        """
        if _proves_token(replies):
            return False
        try:
            self._bearer.renew(PROVIDER, self.operation, deadline=self._deadline)
        except AccessDenied:
            return False
        return True

    def _again(
        self,
        parts: Sequence[BatchGet],
        rejected: Sequence[BatchGet],
        replies: Mapping[str, PartReply],
        answers: dict[str, Answer],
        tries: int,
    ) -> list[BatchGet]:
        """The other parts to retry, after the wait."""
        waits = self._waits(parts, replies, answers, tries)
        patient = {part: wait for part, wait in waits.items() if wait is not None and part not in rejected}
        if patient:
            time.sleep(max(patient.values()))
        return list(patient)

    def _waits(
        self,
        parts: Sequence[BatchGet],
        replies: Mapping[str, PartReply],
        answers: dict[str, Answer],
        tries: int,
    ) -> dict[BatchGet, float | None]:
        """Seconds before each part is retried. Once the reported failure is given up, only limits count."""
        reported = self._reported_failure(answers[part.id] for part in parts)
        waits: dict[BatchGet, float | None] = {}
        gave_up = False
        # The reported failure is the first one, and its decision also applies to the following parts.
        for part in parts:
            answer = answers[part.id]
            throttled = isinstance(answer, RateLimited)
            retries = throttled or not gave_up
            waits[part] = self._wait(answer, replies.get(part.id), tries, reported) if retries else None
            gave_up |= answer is reported and not throttled and waits[part] is None
        return waits

    def _reported_failure(self, answers: Iterable[Answer]) -> ProviderError | None:
        """Report whether the mailbox answers. Returns the first failure while no part was answered."""
        failed: list[ProviderError] = []
        for answer in answers:
            if isinstance(answer, ProviderError) and answer.retryable:
                failed.append(answer)
            else:
                self._part_answered = True
                self._bearer.answered()
        return None if self._part_answered or not failed else failed[0]

    def _wait(
        self, answer: Answer, reply: PartReply | None, tries: int, reported: ProviderError | None
    ) -> float | None:
        """Seconds before a part is retried; None when Graph's answer had no entry for it.

        ``reporter`` receives one failure for the whole batch, and every rate limit.
        """
        if reply is None or not isinstance(answer, ProviderError):
            return None
        reports = answer is reported or isinstance(answer, RateLimited)
        return seconds_before_retry(
            answer, tries, deadline=self._deadline, reporter=self._bearer.reporter if reports else None
        )

    def _answer(self, reply: PartReply | None) -> Answer:
        if isinstance(reply, ProviderError):
            return reply
        if reply is None or (reply.ok and reply.body is None):
            return unreadable(PROVIDER, self.operation)
        return cast("Json", reply.body) if reply.ok else error_for(reply)

    def _batched(self, parts: Sequence[BatchGet]) -> dict[str, PartReply]:
        """Graph's replies by part id, in any order; a part without a reply is missing.

        :raise Unreadable: when the answer cannot be parsed, or has two replies to one part
        """
        body = {"requests": [_request(part) for part in parts]}
        call = Call(
            PROVIDER,
            self.operation,
            "POST",
            f"{self.base}/$batch",
            orjson.dumps(body),
            envelope=True,
            headers=correlation_header(self._bearer),
            decode=self._decode,
        )
        answer = send(call, error_for, deadline=self._deadline, bearer=self._bearer)
        responses = answer.get("responses")
        if not isinstance(responses, list):
            raise unreadable(PROVIDER, self.operation)
        replies = list(self._read(responses))
        by_id: dict[str, PartReply] = dict(replies)
        if len(by_id) < len(replies):
            raise unreadable(PROVIDER, self.operation)
        return by_id

    def _read(self, responses: Iterable[Any]) -> Iterator[tuple[str, HttpReply]]:
        for each in responses:
            if isinstance(each, dict) and type(each.get("status")) is int:
                yield str(each.get("id")), self._reply(cast("BatchPart", each))

    def _reply(self, part: BatchPart) -> HttpReply:
        body, headers = part.get("body"), part.get("headers")
        pairs = headers.items() if isinstance(headers, dict) else ()
        wait = next((str(value) for name, value in pairs if name.lower() == "retry-after"), None)
        return HttpReply(
            PROVIDER,
            self.operation,
            part["status"],
            body if isinstance(body, dict) else _text_body(body),
            retry_after(wait),
        )


def rejected_parts(parts: Sequence[BatchGet], replies: Mapping[str, PartReply]) -> list[BatchGet]:
    """The parts that were answered with 401."""
    found = ((part, replies.get(part.id)) for part in parts)
    return [part for part, reply in found if isinstance(reply, HttpReply) and reply.status == 401]


def _proves_token(replies: Mapping[str, PartReply]) -> bool:
    return any(isinstance(each, HttpReply) and each.proves_token for each in replies.values())


def _text_body(body: object) -> Json | None:
    """The JSON object in a body that Graph passes on as text."""
    return json_object(body.encode("utf-8", "replace")) if isinstance(body, str) else None


def _request(part: BatchGet) -> Json:
    return {"id": part.id, "method": "GET", "url": part.path, "headers": {"Prefer": part.prefer}}


# All pages of one part, or the error that prevented reading them.
Pages = list[Json] | ProviderError


def every_page(batches: Batches, parts: Sequence[BatchGet]) -> dict[str, Pages]:
    """The pages of each part by its id; links to next pages become parts of further batches.

    https://learn.microsoft.com/en-us/graph/paging
    """
    found: dict[str, list[Json]] = {part.id: [] for part in parts}
    failed: dict[str, ProviderError] = {}
    prefer = {part.id: part.prefer for part in parts}
    # Two parts may have one path: the main calendar by its alias and by an earlier id.
    seen = {(part.id, part.path) for part in parts}
    while parts:
        following = []
        for part_id, answer in batches.fetch(parts).items():
            try:
                path = _next(batches, answer)
                if (part_id, path) in seen:
                    raise ProviderError(f"The pages of {PROVIDER} do not end", operation=batches.operation)
            except ProviderError as error:
                failed[part_id] = error
            else:
                found[part_id] += [answer] if isinstance(answer, dict) else []
                if path is not None:
                    seen.add((part_id, path))
                    following.append(BatchGet(part_id, path, prefer[part_id]))
        parts = following
    return found | failed


def relative(link: str, base: str, operation: str) -> str:
    """The path of a nextLink, which is absolute.

    :raise ProviderError: when it names another host: the token must not be sent there
    """
    path = link.removeprefix(base)
    if not link.startswith(base) or not path.startswith("/"):
        raise ProviderError(f"{PROVIDER} sent a page link that leads elsewhere", operation=operation)
    return path


def _next(batches: Batches, answer: Json | ProviderError) -> str | None:
    """The path of the next page, if there is one."""
    if isinstance(answer, ProviderError):
        raise answer
    link = answer.get("@odata.nextLink")
    if link is None:
        return None
    return relative(str(link), batches.base, batches.operation)


HEADER = "client-request-id"


def correlation_header(bearer: Bearer) -> dict[str, str]:
    """The header by which Graph's support and a tenant's logs find a call, if its request has an id.

    https://learn.microsoft.com/en-us/graph/best-practices-concept
    """
    return {} if bearer.request_id is None else {HEADER: bearer.request_id}
