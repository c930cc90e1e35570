"""Proof that the canned provider is realistic: the adapters read the same from it as from the sandbox."""

from __future__ import annotations

import sys
import time

from providers import registry
from providers.base import PRIMARY, Account, Read, Token
from providers.google.client import Google
from providers.google.oauth import GoogleEndpoints
from providers.microsoft.client import Microsoft
from providers.microsoft.oauth import MicrosoftEndpoints
from providers.sandbox.client import Sandbox
from providers.scopes import Level
from tests.benchmarks import calendars
from tests.benchmarks.installation import Installation
from tests.benchmarks.report import Report, progress
from tests.installation.processes import free_port, listens, running, wait_until

RANGE = calendars.START, calendars.START + 14 * calendars.DAY


class _Fixed:
    """A token that never ends."""

    def __init__(self, token: str) -> None:
        self._token = Token(token)

    def access_token(self, *, deadline: float) -> Token:
        return self._token

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        raise AssertionError("nothing refuses this token")


def canned_is_what_the_sandbox_says(installation: Installation, report: Report) -> None:
    """The same meetings in both, asked through the same adapters."""
    progress("comparing the canned provider with the sandbox")
    port = free_port()
    command = [sys.executable, "-m", "providers.sandbox", "--port", str(port)]
    installation.provider.behave()
    with running(command, installation.environment) as process:
        wait_until(lambda: listens(port), [process])
        sandbox = Sandbox(f"http://127.0.0.1:{port}")
        for person, provider in enumerate(("google", "microsoft")):
            email = f"proof@{provider}.example"
            events = [
                {"start": calendars.text(start), "end": calendars.text(end)}
                for start, end in calendars.busy(person)
            ]
            account = sandbox.account(provider, email, events=events)
            said = _busy(port, provider, email, account.access_token)
            canned = _busy(installation.provider.port, provider, email, f"person-{person}")
            assert said == canned == calendars.within(person, *RANGE), f"{provider}: {said} and {canned}"
            assert said
    report.note(
        "The provider is a process of the benchmarks' own with canned answers; before the run, both adapters "
        f"read the same {len(said)} busy periods from it as from the sandbox."
    )


def _busy(port: int, name: str, email: str, token: str) -> list[calendars.Period]:
    """The main calendar's busy periods, through our adapter."""
    url = f"http://127.0.0.1:{port}"
    adapters = {
        "google": Google(GoogleEndpoints(f"{url}/google/calendar/v3", url, url, url, url, url)),
        "microsoft": Microsoft(MicrosoftEndpoints(f"{url}/microsoft/v1.0", url, "common")),
    }
    account = Account(email, frozenset(registry.scopes(name).level_scopes(Level.FREE_BUSY)), _Fixed(token))
    outcomes = adapters[name].busy(account, [PRIMARY], *RANGE, deadline=time.monotonic() + 10)
    found = outcomes[PRIMARY]
    assert isinstance(found, Read), found
    return list(zip(found.busy.starts.tolist(), found.busy.ends.tolist(), strict=True))
