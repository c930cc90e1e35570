"""azure-identity's client credentials and msgraph-sdk against the sandbox's applications.

azure-identity accepts only https addresses, so a server with TLS forwards its requests to the sandbox.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from providers.sandbox.client import Sandbox, SandboxDomain
from tests import certificates
from tests.http_server import Handler, serving

# The SDK's generated code uses deprecated parts of its own library.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from azure.core.exceptions import ClientAuthenticationError
    from azure.identity import ClientSecretCredential
    from msgraph.generated.models.o_data_errors.o_data_error import ODataError
    from msgraph.generated.users.item.calendar.calendar_view.calendar_view_request_builder import (
        CalendarViewRequestBuilder,
    )

    from tests.clients.graph_client import Graph, with_query

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

DOMAIN = "acme.example"
ADA, BOB, EVE = (f"{name}@{DOMAIN}" for name in ("ada", "bob", "eve"))
MEETING = {"subject": "Design review", "start": "2026-12-03T09:00:00", "end": "2026-12-03T10:00:00"}
WINDOW = {"start_date_time": "2026-12-03T00:00:00Z", "end_date_time": "2026-12-04T00:00:00Z"}
SCOPE = "https://graph.microsoft.com/.default"


@pytest.fixture
def acme(sandbox: Sandbox) -> SandboxDomain:
    members = [{"email": ADA, "events": [MEETING]}, BOB, {"email": EVE, "excluded": True}]
    return sandbox.domain("microsoft", DOMAIN, members)


@pytest.fixture
def authority(sandbox: Sandbox, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The https address of the sandbox's identity platform, and the certificate to trust."""

    class Forwarding(Handler):
        def forward(self) -> None:
            headers = {name: self.headers[name] for name in ("Content-Type", "Host") if self.headers[name]}
            answer = requests.request(
                self.command,
                sandbox.url + self.path,
                data=self.read_body(),
                headers={**headers, "X-Forwarded-Proto": "https"},
                timeout=10,
            )
            self.reply(answer.status_code, answer.content, {"Content-Type": "application/json"})

        do_GET = do_POST = forward

    certificate, tls = certificates.issue(tmp_path, "127.0.0.1")
    with serving(Forwarding, tls=tls) as url:
        yield f"{url}/microsoft", certificate


@pytest.fixture
def token(authority: tuple[str, Path]) -> Callable[..., str]:
    """Requests a token with azure-identity."""
    url, certificate = authority

    def requested(domain: SandboxDomain, **changed: str) -> str:
        known = {"tenant_id": domain.tenant, "client_id": domain.client_id}
        known |= {"client_secret": domain.client_secret}
        credential = ClientSecretCredential(
            **(known | changed),
            authority=url,
            disable_instance_discovery=True,
            connection_verify=str(certificate),
        )
        with credential:
            return str(credential.get_token(SCOPE).token)

    return requested


def run(sandbox: Sandbox, token: str, use: Callable[[Graph], Awaitable[None]]) -> None:
    """Run a coroutine with the official client and a token."""

    async def connected() -> None:
        made = Graph(sandbox.url, token)
        try:
            await use(made)
        finally:
            await made.close()

    asyncio.run(connected())


def view_of(it: Graph, email: str) -> Any:
    query = CalendarViewRequestBuilder.CalendarViewRequestBuilderGetQueryParameters(**WINDOW)
    return it.client.users.by_user_id(email).calendar.calendar_view.get(with_query(query))


def test_mailboxes_are_read_with_the_applications_permissions(
    sandbox: Sandbox, acme: SandboxDomain, token: Callable[..., str]
) -> None:
    async def use(it: Graph) -> None:
        (event,) = (await it.read(view_of(it, ADA))).value
        assert event.subject == "Design review"
        assert (await it.read(view_of(it, BOB))).value == []
        settings = await it.read(it.client.users.by_user_id(BOB).mailbox_settings.get())
        assert settings.time_zone == "UTC"
        calendars = await it.read(it.client.users.by_user_id(BOB).calendars.get())
        assert [calendar.name for calendar in calendars.value] == ["Calendar"]

    run(sandbox, token(acme), use)


def test_refusals_of_mailboxes_are_understood(
    sandbox: Sandbox, acme: SandboxDomain, token: Callable[..., str]
) -> None:
    async def use(it: Graph) -> None:
        for call, expected in (
            (view_of(it, EVE), (403, "ErrorAccessDenied")),
            (view_of(it, f"nosuch@{DOMAIN}"), (404, "ErrorInvalidUser")),
            (it.client.me.calendar.get(), (400, "BadRequest")),
        ):
            with pytest.raises(ODataError) as caught:
                await call
            assert (caught.value.response_status_code, caught.value.error.code) == expected

    run(sandbox, token(acme), use)


def test_refused_credentials_are_understood(
    sandbox: Sandbox, acme: SandboxDomain, token: Callable[..., str]
) -> None:
    def refused(**changed: str) -> str:
        with pytest.raises(ClientAuthenticationError) as caught:
            token(acme, **changed)
        return str(caught.value.message)

    assert "AADSTS7000215" in refused(client_secret="guessed")
    assert "AADSTS700016" in refused(client_id="6731de76-14a6-49ae-97bc-6eba6914391e")
    assert "AADSTS90002" in refused(tenant_id="0ef6a23b-8dd4-4d0d-9d7b-4ad7c3c1d8cc")
    sandbox.change_domain(DOMAIN, secretExpired=True)
    assert "AADSTS7000222" in refused()
    sandbox.withdraw(DOMAIN)
    assert "AADSTS700016" in refused()
