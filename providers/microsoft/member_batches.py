"""Batches whose parts read the mailboxes of different members: each part has its own outcome at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from providers.base import CallReporter
from providers.errors import ProviderError, RateLimited, Unavailable, Unreadable
from providers.http.send import Bearer, token_refused_here
from providers.microsoft import calendar_view
from providers.microsoft.batch import Answer, Batches, Part, PartReply, rejected_parts
from providers.microsoft.errors import PROVIDER


class MemberBatches(Batches):
    """The batches of one operation, without retries of parts.

    ``mailboxes`` has the address of each part by its id, ``reporters`` the reporter of each address.

    A mailbox that is throttled names a time to wait, and the other members must not wait for it: Graph
    limits each mailbox by itself (https://learn.microsoft.com/en-us/graph/json-batching).
    """

    def __init__(
        self,
        base: str,
        bearer: Bearer,
        operation: str,
        *,
        mailboxes: Mapping[str, str],
        reporters: Mapping[str, CallReporter | None],
        deadline: float,
    ) -> None:
        super().__init__(base, bearer, operation, deadline=deadline, decode=calendar_view.decode)
        self._mailboxes = mailboxes
        self._reporters = reporters

    def _settle(self, parts: Sequence[Part]) -> dict[str, Answer]:
        """Send one batch; the parts whose token was rejected are sent once more, with another token.

        An answer that cannot be parsed shows nothing about any mailbox: each member is then read separately.
        """
        try:
            answers = self._answers(parts)
        except Unreadable as error:
            return dict.fromkeys([part.id for part in parts], error)
        of_mailboxes: dict[str, list[Answer]] = {}
        for part in parts:
            of_mailboxes.setdefault(self._mailboxes[part.id], []).append(answers[part.id])
        for address, of_mailbox in of_mailboxes.items():
            if (reporter := self._reporters[address]) is not None:
                _report(reporter, of_mailbox)
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


def _report(reporter: CallReporter, answers: Sequence[Answer]) -> None:
    """Report whether one mailbox answers: its rate limits, or the first failure while no part was answered.

    A failure is not final: the member is read separately.
    """
    failed = [each for each in answers if isinstance(each, Unavailable)]
    reported: list[Unavailable] = [each for each in failed if isinstance(each, RateLimited)]
    if len(failed) < len(answers):
        reporter.answered()
    elif not reported:
        reported = failed[:1]
    for each in reported:
        reporter.failed(each, each.retry_after or 0.0, given_up=False)
