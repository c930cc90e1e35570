"""Batches whose parts read the mailboxes of different members: each part has its own outcome at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from providers.base import CallReporter
from providers.errors import ProviderError, Unavailable
from providers.http.send import Bearer
from providers.microsoft import calendar_view
from providers.microsoft.batch import Answer, Batches, Part
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
        """Send one batch; the parts whose token was rejected are sent once more, with another token."""
        answers, rejected = self._answers(parts)
        if rejected:
            self._bearer.renew(PROVIDER, self.operation, deadline=self._deadline)
            answers |= self._answers(rejected)[0]
        for part in parts:
            self._report(part, answers[part.id])
        return answers

    def _answers(self, parts: Sequence[Part]) -> tuple[dict[str, Answer], list[Part]]:
        """The answer to each part of one batch, and the parts whose token was rejected."""
        replies = self._exchange(parts)
        if isinstance(replies, ProviderError):
            return {part.id: replies for part in parts}, []
        rejected = [part for part in parts if (reply := replies.get(part.id)) and reply.status == 401]
        return {part.id: self._answer(replies.get(part.id)) for part in parts}, rejected

    def _report(self, part: Part, answer: Answer) -> None:
        """Report the answer about one mailbox. A failure is not final: the member is read separately."""
        reporter = self._reporters[part.id]
        if reporter is None:
            return
        if isinstance(answer, Unavailable):
            reporter.failed(answer, answer.retry_after or 0.0, given_up=False)
        elif not (isinstance(answer, ProviderError) and answer.retryable):
            reporter.answered()
