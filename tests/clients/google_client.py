"""google-api-python-client, pointed at the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httplib2
from google.api_core.client_options import ClientOptions
from google.oauth2.credentials import Credentials
from google_auth_httplib2 import AuthorizedHttp
from googleapiclient.discovery import build

from providers.sandbox.client import Sandbox, SandboxAccount


@contextmanager
def connected(sandbox: Sandbox, account: SandboxAccount, token: str | None = None) -> Iterator[Any]:
    """The client with an account's tokens; ``token`` replaces the access token."""
    credentials = Credentials(
        token or account.access_token,
        refresh_token=account.refresh_token,
        token_uri=f"{sandbox.url}/google/token",
        client_id="almanac",
        client_secret="s3cret",
    )
    client = build(
        "calendar",
        "v3",
        http=AuthorizedHttp(credentials, http=httplib2.Http(timeout=10)),
        static_discovery=True,
        client_options=ClientOptions(api_endpoint=f"{sandbox.url}/google/calendar/v3/"),
    )
    try:
        yield client
    finally:
        client.close()
