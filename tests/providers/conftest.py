"""The adapters over real sockets: the sandbox for regular answers, a scripted server for faulty ones."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from providers.base import Account, Token
from providers.errors import ProviderError
from providers.google.client import Google
from providers.google.oauth import GoogleEndpoints, GoogleOAuth
from providers.http import send
from providers.microsoft.client import Microsoft
from providers.microsoft.oauth import MicrosoftEndpoints, MicrosoftOAuth
from providers.oauth.client import Client, OAuth
from providers.sandbox.client import Sandbox, SandboxAccount
from tests.http_server import Handler, KeepAliveHandler, serving
from tests.providers.addresses import google_at, microsoft_at
from tests.providers.caldav.servers import SERVERS, CalDavServer
from tests.providers.caldav.world import CalDavWorld, proxied
from tests.providers.ics.server import feed_server
from tests.providers.ics.world import FeedWorld

CLIENT = Client("client-id", Token("client-secret"))


@pytest.fixture(scope="module", autouse=True)
def quick_retries() -> Iterator[None]:
    """As many retries as usual, with almost no pause before them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(send, "BACKOFF", 0.01)
        yield


@pytest.fixture
def google_endpoints(sandbox: Sandbox) -> GoogleEndpoints:
    return google_at(f"{sandbox.url}/google")


@pytest.fixture
def microsoft_endpoints(sandbox: Sandbox) -> MicrosoftEndpoints:
    return microsoft_at(f"{sandbox.url}/microsoft")


@pytest.fixture
def google(google_endpoints: GoogleEndpoints) -> Google:
    return Google(google_endpoints)


@pytest.fixture
def microsoft(microsoft_endpoints: MicrosoftEndpoints) -> Microsoft:
    return Microsoft(microsoft_endpoints)


@pytest.fixture
def oauth(google_endpoints: GoogleEndpoints, microsoft_endpoints: MicrosoftEndpoints) -> dict[str, OAuth]:
    return {
        "google": GoogleOAuth(google_endpoints, CLIENT),
        "microsoft": MicrosoftOAuth(microsoft_endpoints, CLIENT),
    }


class Tokens:
    """The tokens of one account, refreshed at a real token endpoint when rejected."""

    def __init__(self, access: str, refresh: str, server: OAuth | None) -> None:
        self.access = Token(access)
        self.refresh = Token(refresh)
        self.server = server
        self.renewals = 0

    def access_token(self, *, deadline: float) -> Token:
        return self.access

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        self.renewals += 1
        if self.server is not None:
            grant = self.server.refresh(self.refresh, deadline=deadline)
            self.access, self.refresh = grant.access_token, grant.refresh_token or self.refresh
        return self.access


@pytest.fixture
def connect(oauth: dict[str, OAuth]) -> Callable[..., Account]:
    """Make a base ``Account`` from an account of the sandbox; ``access`` replaces its token."""

    def connected(account: SandboxAccount, access: str | None = None) -> Account:
        tokens = Tokens(access or account.access_token, account.refresh_token, oauth[account.provider])
        return Account(account.email, frozenset(account.scope.split()), tokens)

    return connected


@dataclass
class Script:
    """Answers of a server in order, the last one repeated; ``requests`` has the requests it received."""

    url: str
    answers: list[Callable[[Handler], None]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def say(self, status: int = 200, body: Any = None, **headers: str) -> None:
        """Add an answer; bytes are sent unchanged, anything else as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()

        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.append(lambda handler: handler.reply(status, content, named))

    def act(self, answer: Callable[[Handler], None]) -> None:
        """Add a handler that writes the answer itself."""
        self.answers.append(answer)


@pytest.fixture
def script() -> Iterator[Script]:
    """A server with scripted answers."""

    class ScriptedHandler(KeepAliveHandler):
        def handle_any(self) -> None:
            request = {"method": self.command, "path": self.path, "headers": dict(self.headers)}
            seen = {"body": self.read_body(), "peer": self.client_address, "at": time.monotonic()}
            scripted.requests.append(request | seen)
            answer = scripted.answers.pop(0) if len(scripted.answers) > 1 else scripted.answers[0]
            answer(self)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

    with serving(ScriptedHandler) as url:
        scripted = Script(url)
        yield scripted


@pytest.fixture
def scripted_account() -> Account:
    """An account for scripted servers, with every scope the tests need; a refresh gives another token."""

    class Fresh(Tokens):
        def renewed(self, rejected: Token, *, deadline: float) -> Token:
            self.access = Token(f"{rejected.reveal}+")
            return super().renewed(rejected, deadline=deadline)

    scopes = {"https://www.googleapis.com/auth/calendar", "Calendars.ReadWrite", "MailboxSettings.Read"}
    return Account("ada@example.com", frozenset(scopes), Fresh("secret-access", "secret-refresh", None))


@pytest.fixture
def soon() -> Callable[[float], float]:
    """A deadline the given number of seconds from now."""
    return lambda seconds=30.0: time.monotonic() + seconds


@pytest.fixture
def is_fit_for_people() -> Callable[[ProviderError], None]:
    """Check that an error contains no URL, address, token, secret or internal name, and has an operation."""

    def check(error: ProviderError) -> None:
        shown = f"{error} {error!r} {error.message}"
        for forbidden in ("http", "127.0.0.1", "@", "secret", "Bearer", "Traceback"):
            assert forbidden not in shown
        assert error.message
        assert error.operation is not None
        assert error.operation not in shown
        assert error.__cause__ is None

    return check


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], CalDavServer]]:
    """A running CalDAV server by its name; each is started once."""
    running: dict[str, CalDavServer] = {}
    with ExitStack() as ending:

        def start(name: str) -> CalDavServer:
            if name not in running:
                running[name] = ending.enter_context(SERVERS[name](tmp_path_factory.mktemp(name)))
            return running[name]

        yield start


@pytest.fixture
def radicale_world(servers: Callable[[str], CalDavServer]) -> Iterator[CalDavWorld]:
    """Radicale, for the suite of every provider."""
    with proxied(servers("radicale")) as proxy:
        yield CalDavWorld(servers("radicale"), proxy)


@pytest.fixture
def xandikos_world(servers: Callable[[str], CalDavServer]) -> Iterator[CalDavWorld]:
    """Xandikos, for the suite of every provider."""
    with proxied(servers("xandikos")) as proxy:
        yield CalDavWorld(servers("xandikos"), proxy)


@pytest.fixture
def feed_world() -> Iterator[FeedWorld]:
    """Subscribed calendars, for the suite of every provider."""
    with feed_server() as server:
        yield FeedWorld(server)
