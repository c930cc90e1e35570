"""JSON batches: twenty parts in each, and an answer or an error for every part.

https://learn.microsoft.com/en-us/graph/json-batching
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from providers.errors import AuthorizationInvalid, ProviderError, RateLimited
from providers.http.retries import retry_after, wait_before_retry
from providers.http.send import Bearer, Call, Decode, HttpReply, Json, json_object, send, unreadable
from providers.microsoft.correlation import correlation_header
from providers.microsoft.errors import PROVIDER, error_for
from providers.microsoft.payloads import BatchPart

# https://learn.microsoft.com/en-us/graph/json-batching#batch-size-limitations
PARTS_PER_BATCH = 20

# Times in UTC, whatever the mailbox's own setting.
IN_UTC = 'outlook.timezone="UTC"'

# The answer to one part, or its failure.
Answer = Json | ProviderError


@dataclass(frozen=True, slots=True)
class Part:
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

    def fetch(self, parts: Sequence[Part]) -> dict[str, Answer]:
        """An answer or an error for every part, by its id.

        A failed batch fails its parts if an earlier batch was answered; otherwise its error is raised.

        :raise GrantGone: when the token is rejected after a refresh
        """
        answers: dict[str, Answer] = {}
        for first in range(0, len(parts), PARTS_PER_BATCH):
            answers |= self._settle(parts[first : first + PARTS_PER_BATCH])
        return answers

    def _settle(self, parts: Sequence[Part]) -> dict[str, Answer]:
        """Send one batch, then retry those of its parts that may succeed."""
        answers: dict[str, Answer] = {}
        tries = 0
        while parts:
            tries += 1
            replies = self._exchange(parts)
            if isinstance(replies, ProviderError):
                return answers | {part.id: replies for part in parts}
            answers |= {part.id: self._answer(replies.get(part.id)) for part in parts}
            parts = self._again(parts, replies, answers, tries)
        return answers

    def _exchange(self, parts: Sequence[Part]) -> dict[str, HttpReply] | ProviderError:
        """The replies to one batch, or its error; the error is raised if no batch was answered before."""
        try:
            replies = self._replies(parts)
        except AuthorizationInvalid:
            raise
        except ProviderError as error:
            if not self._answered:
                raise
            return error
        self._answered = True
        return replies

    def _again(
        self, parts: Sequence[Part], replies: dict[str, HttpReply], answers: dict[str, Answer], tries: int
    ) -> list[Part]:
        """The parts to retry, after the token was refreshed or the wait is over."""
        rejected = [part for part in parts if (reply := replies.get(part.id)) and reply.status == 401]
        if rejected:
            self._bearer.renew(PROVIDER, self.operation, deadline=self._deadline)
        waits = self._waits(parts, replies, answers, tries)
        patient = {part: wait for part, wait in waits.items() if wait is not None and part not in rejected}
        if patient:
            time.sleep(max(patient.values()))
        return [*rejected, *patient]

    def _waits(
        self, parts: Sequence[Part], replies: dict[str, HttpReply], answers: dict[str, Answer], tries: int
    ) -> dict[Part, float | None]:
        """Seconds before each part is retried. Once the reported failure is given up, only limits count."""
        reported = self._reported_failure(answers[part.id] for part in parts)
        waits: dict[Part, float | None] = {}
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
        self, answer: Answer, reply: HttpReply | None, tries: int, reported: ProviderError | None
    ) -> float | None:
        """Seconds before a part is retried; None when Graph's answer had no entry for it.

        ``reporter`` receives one failure for the whole batch, and every rate limit.
        """
        if reply is None or not isinstance(answer, ProviderError):
            return None
        reports = answer is reported or isinstance(answer, RateLimited)
        return wait_before_retry(
            answer, tries, deadline=self._deadline, reporter=self._bearer.reporter if reports else None
        )

    def _answer(self, reply: HttpReply | None) -> Answer:
        if reply is None or (reply.ok and reply.body is None):
            return unreadable(PROVIDER, self.operation)
        return cast("Json", reply.body) if reply.ok else error_for(reply)

    def _replies(self, parts: Sequence[Part]) -> dict[str, HttpReply]:
        """Graph's replies by part id, in any order; a part without a reply is missing."""
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
        return dict(self._read(responses))

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
            body if isinstance(body, dict) else None,
            retry_after(wait),
        )


def _request(part: Part) -> Json:
    return {"id": part.id, "method": "GET", "url": part.path, "headers": {"Prefer": part.prefer}}
