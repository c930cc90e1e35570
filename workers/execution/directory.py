"""Reads the directory of an organization by its grant, page by page. Nothing of it is cached or stored."""

from __future__ import annotations

import logging
from dataclasses import replace

from providers import registry
from providers.base import Failed, Token
from providers.definition import required
from providers.directory import Directory, Entry, Kind, Listing
from providers.errors import InsufficientScopes, ProviderError, ScopesRefused
from providers.http.calls import Bearer
from store.sql.queries.organization_grants import GrantCredentials
from workers.execution import organization_tokens
from workers.jobs import ReadDirectory, Reply
from workers.runtime import Runtime
from workers.telemetry import request_ids

log = logging.getLogger(__name__)

# Entries of one kind in a reply.
MOST = 20_000


def read_directory(runtime: Runtime, job: ReadDirectory, deadline: float) -> Reply:
    """The entries of one kind that match the question."""
    try:
        grant = organization_tokens.load(runtime, job.grant)
        provider = runtime.provider(grant.provider)
        directory = required(provider.directory, registry.title(grant.provider))
        tokens = _Tokens(runtime, grant, directory, job.kind)
        return Reply(directory=_read(directory, tokens, job, deadline))
    except ProviderError as error:
        log.info("directory not read: %s: %s", error.reason, error.message)
        # The operations of the API are those of calendars.
        return Reply(failed=replace(Failed.from_error(error), operation=None))


class _Tokens:
    """A ``TokenSource``: each token is new, so that a permission counts as soon as it is added."""

    def __init__(self, runtime: Runtime, grant: GrantCredentials, directory: Directory, kind: Kind) -> None:
        self._runtime = runtime
        self._grant = replace(grant, scope=frozenset(directory.scopes(kind)))
        self._permission = directory.permission(kind)

    def access_token(self, *, deadline: float) -> Token:
        try:
            issued = organization_tokens.issue(self._runtime, self._grant, self._grant.subject, deadline)
        except ScopesRefused:
            # The grant itself may be in force: its own scopes are others.
            raise InsufficientScopes(self._permission) from None
        return issued.access_token

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        return self.access_token(deadline=deadline)


def _read(directory: Directory, tokens: _Tokens, job: ReadDirectory, deadline: float) -> Listing:
    # Without a ``CallReporter``: the directory has quotas of its own, and its failures say nothing about
    # calendars.
    bearer = Bearer(tokens, request_id=request_ids.current.get())
    found: list[Entry] = []
    for entry in directory.entries(job.kind, bearer, deadline=deadline):
        if not entry.matches(job.part):
            continue
        if len(found) == MOST:
            return Listing(tuple(found), more=True)
        found.append(entry)
    return Listing(tuple(found))
