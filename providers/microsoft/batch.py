"""Parts of a JSON batch: sent twenty at a time, answered or failed one by one.

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
from providers.http.send import Bearer, Call, Json, Reply, send, unreadable
from providers.microsoft.correlation import correlation
from providers.microsoft.errors import PROVIDER, error_for
from providers.microsoft.payloads import BatchPart

# https://learn.microsoft.com/en-us/graph/json-batching#batch-size-limitations
PARTS_PER_BATCH = 20

# Times in UTC, whatever the mailbox prefers.
IN_UTC = 'outlook.timezone="UTC"'

# What came of one part.
Answer = Json | ProviderError


@dataclass(frozen=True, slots=True)
class Part:
    """One GET of a batch: ``id`` is the caller's, ``path`` begins with a slash under the base URL.

    ``prefer`` is its own header: those of the batch do not reach its parts.
    """

    id: str
    path: str
    prefer: str = IN_UTC


class Batches:
    """The batches of one operation, one at a time: a mailbox takes four calls at once and no more."""

    def __init__(self, base: str, bearer: Bearer, operation: str, *, deadline: float) -> None:
        self.base = base
        self.operation = operation
        self._bearer = bearer
        self._deadline = deadline
        self._answered = False
        self._part_answered = False

    def fetch(self, parts: Sequence[Part]) -> dict[str, Answer]:
        """An answer or an error for every part, by its id.

        A batch that fails as a whole fails its parts once another was answered, and is raised before.

        :raise GrantGone: when the token is refused even after a renewal
        """
        answers: dict[str, Answer] = {}
        for first in range(0, len(parts), PARTS_PER_BATCH):
            answers |= self._settle(parts[first : first + PARTS_PER_BATCH])
        return answers

    def _settle(self, parts: Sequence[Part]) -> dict[str, Answer]:
        """One batch, then those of its parts again that may yet succeed."""
        answers: dict[str, Answer] = {}
        tries = 0
        while parts:
            tries += 1
            try:
                replies = self._replies(parts)
            except AuthorizationInvalid:
                raise
            except ProviderError as error:
                if not self._answered:
                    raise
                return answers | {part.id: error for part in parts}
            self._answered = True
            answers |= {part.id: self._answer(replies.get(part.id)) for part in parts}
            parts = self._again(parts, replies, answers, tries)
        return answers

    def _again(
        self, parts: Sequence[Part], replies: dict[str, Reply], answers: dict[str, Answer], tries: int
    ) -> list[Part]:
        """The parts to ask once more, after the token was renewed or the wait was over."""
        rejected = [part for part in parts if (reply := replies.get(part.id)) and reply.status == 401]
        if rejected:
            self._bearer.renew(PROVIDER, self.operation, deadline=self._deadline)
        waits = self._waits(parts, replies, answers, tries)
        patient = {part: wait for part, wait in waits.items() if wait is not None and part not in rejected}
        if patient:
            time.sleep(max(patient.values()))
        return [*rejected, *patient]

    def _waits(
        self, parts: Sequence[Part], replies: dict[str, Reply], answers: dict[str, Answer], tries: int
    ) -> dict[Part, float | None]:
        """Seconds before each part is asked again; where the one that speaks is not, only the throttled."""
        speaks = self._heard(answers[part.id] for part in parts)
        waits: dict[Part, float | None] = {}
        silent = False
        # The one that speaks is the first that failed: the others hear what it was told.
        for part in parts:
            answer = answers[part.id]
            throttled = isinstance(answer, RateLimited)
            hears = throttled or not silent
            waits[part] = self._wait(answer, replies.get(part.id), tries, speaks) if hears else None
            silent |= answer is speaks and not throttled and waits[part] is None
        return waits

    def _heard(self, answers: Iterable[Answer]) -> ProviderError | None:
        """Note whether the mailbox answers; while no part was answered, the failure that speaks for all."""
        failed: list[ProviderError] = []
        for answer in answers:
            if isinstance(answer, ProviderError) and answer.retryable:
                failed.append(answer)
            else:
                self._part_answered = True
                self._bearer.answered()
        return None if self._part_answered or not failed else failed[0]

    def _wait(
        self, answer: Answer, reply: Reply | None, tries: int, speaks: ProviderError | None
    ) -> float | None:
        """Seconds before a part is asked again; only for what Graph itself answered so.

        Of the parts that have failed all workers hear once, and of those that are throttled.
        """
        if reply is None or not isinstance(answer, ProviderError):
            return None
        told = answer is speaks or isinstance(answer, RateLimited)
        return wait_before_retry(
            answer, tries, deadline=self._deadline, traffic=self._bearer.traffic if told else None
        )

    def _answer(self, reply: Reply | None) -> Answer:
        if reply is None or (reply.ok and reply.body is None):
            return unreadable(PROVIDER, self.operation)
        return cast("Json", reply.body) if reply.ok else error_for(reply)

    def _replies(self, parts: Sequence[Part]) -> dict[str, Reply]:
        """What Graph answered, in any order; a part it forgot is missing here."""
        body = {"requests": [_request(part) for part in parts]}
        call = Call(
            PROVIDER,
            self.operation,
            "POST",
            f"{self.base}/$batch",
            orjson.dumps(body),
            envelope=True,
            headers=correlation(self._bearer),
        )
        answer = send(call, error_for, deadline=self._deadline, bearer=self._bearer)
        responses = answer.get("responses")
        if not isinstance(responses, list):
            raise unreadable(PROVIDER, self.operation)
        return dict(self._read(responses))

    def _read(self, responses: Iterable[Any]) -> Iterator[tuple[str, Reply]]:
        for each in responses:
            if isinstance(each, dict) and type(each.get("status")) is int:
                yield str(each.get("id")), self._reply(cast("BatchPart", each))

    def _reply(self, part: BatchPart) -> Reply:
        body, headers = part.get("body"), part.get("headers")
        pairs = headers.items() if isinstance(headers, dict) else ()
        wait = next((str(value) for name, value in pairs if name.lower() == "retry-after"), None)
        return Reply(
            PROVIDER,
            self.operation,
            part["status"],
            body if isinstance(body, dict) else None,
            retry_after(wait),
        )


def _request(part: Part) -> Json:
    return {"id": part.id, "method": "GET", "url": part.path, "headers": {"Prefer": part.prefer}}
