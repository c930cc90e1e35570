"""The steps of a consent: the link, the user's agreement, and the new connection."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from tests.app.days import PROVIDERS
from tests.conftest import Api

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
ADA = "ada@example.com"
OWN = "https://app.example.com/connected"
BELOW = "https://app.example.com/in/*"


def link(api: Api, user: str, provider: str, **options: Any) -> str:
    """The link that ``authorize`` makes."""
    answer = api.post(f"/users/{user}/oauth/{provider}/authorize", options)
    assert answer.status_code == 200, answer.json
    return answer.json["data"]["link"]


def query_of(url: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}


def consent(url: str, email: str = ADA) -> str:
    """Open a link as a program that consents; returns where the provider sends it."""
    answer = requests.get(url, params={"login_hint": email}, allow_redirects=False, timeout=10)
    assert answer.status_code == 302, answer.text
    return answer.headers["Location"]


def arrive(api: Api, url: str):
    """Open a URL of Almanac as a browser does, without an API key."""
    parts = urlsplit(url)
    return api.client.get(f"{parts.path}?{parts.query}")


def connected(api: Api, user: str, provider: str):
    answer = api.get(f"/users/{user}/oauth/{provider}")
    assert answer.status_code == 200, answer.json
    return answer.json["data"]


def nothing_connected(api: Api, user: str) -> bool:
    return api.get(f"/users/{user}/oauth").json["data"] == []
