"""Batches whose parts read the mailboxes of different members: each part has its own outcome at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from providers.base import CallReporter
from providers.errors import ProviderError, Unavailable, Unreadable
from providers.http.send import Bearer, token_refused_here
from providers.microsoft import calendar_view
from providers.microsoft.batch import Answer, Batches, Part, PartReply, rejected_parts
from providers.microsoft.errors import PROVIDER


class MemberBatches(Batches):
    """The batches of one operation, without retries of parts; ``reporters`` by part id.

    A mailbox that is throttled names a time to wait, and the other members must not wait for it: Graph
    limits each mailbox by itself (https://learn.microsoft.com/en-us/graph/json-batching).
    """

    def __init__(
        self,
        base: str,
        bearer: Bearer,
        operation: str,
        *,
        reporters: Mapping[str, CallReporter | None],
        deadline: float,
    ) -> None:
        super().__init__(base, bearer, operation, deadline=deadline, decode=calendar_view.decode)
        self._reporters = reporters

    def _settle(self, parts: Sequence[Part]) -> dict[str, Answer]:
        """Send one batch; the parts whose token was rejected are sent once more, with another token.

        An answer that cannot be parsed shows nothing about any mailbox: each member is then read separately.
        """
        try:
            answers = self._answers(parts)
        except Unreadable as error:
            return dict.fromkeys([part.id for part in parts], error)
        for part in parts:
            self._report(part, answers[part.id])
        return answers

    def _answers(self, parts: Sequence[Part]) -> dict[str, Answer]:
        """The answer to each part of one batch."""
        replies = self._exchange(parts)
        if isinstance(replies, ProviderError):
            return {part.id: replies for part in parts}
        answers = {part.id: self._answer(replies.get(part.id)) for part in parts}
        rejected = rejected_parts(parts, replies)
        if not rejected:
            return answers
        if self._renew(replies):
            return answers | self._answers(rejected)
        return answers | {part.id: token_refused_here(PROVIDER, self.operation) for part in rejected}

    def _replies(self, parts: Sequence[Part]) -> Mapping[str, PartReply]:
        return self._batched(parts)

    def _report(self, part: Part, answer: Answer) -> None:
        """Report the answer about one mailbox. A failure is not final: the member is read separately."""
        reporter = self._reporters[part.id]
        if reporter is None:
            return
        if isinstance(answer, Unavailable):
            reporter.failed(answer, answer.retry_after or 0.0, given_up=False)
        elif not (isinstance(answer, ProviderError) and answer.retryable):
            reporter.answered()
