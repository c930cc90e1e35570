"""``almanac mcp --http`` in its own process: sign-in by key, and tools that hold and book."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
import requests
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from almanac_client import Almanac
from almanac_mcp.allowed_requests import booking_client
from providers.sandbox.client import Sandbox
from tests.app.days import meeting
from tests.conftest import Api
from tests.installation.processes import free_port, listens, running, wait_until, web_server

# Needs a whole installation: too slow for the default run.
pytestmark = pytest.mark.long

ALMANAC = [sys.executable, "-c", "from app.cli.main import main; main()", "mcp", "--http"]
TIME = {"start": "2036-12-03T09:00", "end": "2036-12-03T10:00", "time_zone": "Europe/Berlin"}
CONFIRMED = {
    "confirmed_start": TIME["start"],
    "confirmed_end": TIME["end"],
    "time_zone": TIME["time_zone"],
    "subject": "Contract",
}
BUSY = {"start": "2036-12-03", "end": "2036-12-04", "time_zone": "Europe/Berlin"}

Ask = Callable[..., CallToolResult]


@pytest.fixture(scope="module")
def base_url(environment: dict[str, str], database: object, worker: None) -> Iterator[str]:
    """A real server."""
    with web_server(environment, count=1) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def served(base_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Start a server for assistants, with options; returns its address."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    log: Path = tmp_path_factory.mktemp("mcp") / "log"
    found: dict[tuple[str, ...], str] = {}
    with ExitStack() as stack, log.open("wb") as output:

        def start(*options: str) -> str:
            if options not in found:
                port = free_port()
                command = [*ALMANAC, "--url", base_url, "--port", str(port), *options]
                process = stack.enter_context(running(command, clean, output))
                wait_until(lambda: listens(port), [process], output=log.read_text)
                found[options] = f"http://127.0.0.1:{port}/mcp"
            return found[options]

        yield start


def call(address: str, key: str, act: Callable[[Client], Any]) -> Any:
    async def connected() -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(address, http_client=http), read_timeout_seconds=60) as client,
        ):
            return await act(client)

    return asyncio.run(connected())


@pytest.fixture
def ask(served: Callable[..., str], new_api: Callable[..., Api]) -> Ask:
    """Call a tool that may book."""
    key = new_api().key
    return lambda tool, **arguments: call(
        served("--book"), key, lambda client: client.call_tool(tool, arguments)
    )


@pytest.fixture
def ada(sandbox: Sandbox, new_user: Callable[..., str]) -> str:
    return new_user(
        sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")]), name="ada"
    )


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert block.type == "text"
    return block.text


def hold(ask: Ask, user: str) -> str:
    held = ask("hold_time", user_ids=[user], **TIME)
    assert not held.is_error, text(held)
    found: str = held.structured_content["hold"]["id"]
    return found


def test_a_confirmed_hold_is_booked_once(ask, ada):
    held = ask("hold_time", user_ids=[ada], keep_minutes=5, **TIME)
    assert text(held).startswith("Held: Wed 3 Dec 09:00-10:00 (Europe/Berlin) of ")
    booking = {"hold_id": held.structured_content["hold"]["id"], "user_id": ada, **CONFIRMED}

    booked = [ask("book_held_time", confirmed=True, invited=["kim@example.com"], **booking) for _ in range(2)]

    assert not booked[0].is_error, text(booked[0])
    line = "Booked: Wed 3 Dec 09:00-10:00 (Europe/Berlin), Contract, invited: kim@example.com."
    assert [text(each) for each in booked] == [line, line]
    assert booked[0].structured_content == booked[1].structured_content
    busy = ask("busy_times_of_user", user_id=ada, **BUSY)
    assert text(busy) == "1 busy period:\nWed 3 Dec 09:00-10:00"


def test_without_confirmation_nothing_is_booked(ask, ada):
    booking = {"hold_id": hold(ask, ada), "user_id": ada, **CONFIRMED}

    refused = ask("book_held_time", confirmed=False, **booking)

    assert refused.is_error
    assert text(refused).startswith("Nothing was booked, because confirmed is false.")
    assert text(ask("busy_times_of_user", user_id=ada, **BUSY)) == "No busy periods."


def test_a_confirmed_time_outside_the_hold_is_refused(ask, ada):
    booking = {"hold_id": hold(ask, ada), "user_id": ada, **CONFIRMED}

    refused = ask("book_held_time", confirmed=True, **{**booking, "confirmed_end": "2036-12-03T11:00"})

    assert refused.is_error
    assert text(ask("busy_times_of_user", user_id=ada, **BUSY)) == "No busy periods."


def test_held_time_is_nobody_elses_until_it_is_released(ask, ada):
    held = hold(ask, ada)
    assert ask("hold_time", user_ids=[ada], **TIME).is_error

    assert text(ask("release_hold", hold_id=held)) == "Released."

    assert not ask("hold_time", user_ids=[ada], **TIME).is_error


def test_each_request_has_the_rights_of_its_key(served, new_api, new_organization, ada):
    """One server, and keys of two organizations."""
    bound = new_api(organization=new_organization()).key
    everything = new_api().key

    def users(key: str) -> Any:
        return call(
            served("--book"), key, lambda client: client.call_tool("list_users", {"most": 500})
        ).structured_content["users"]

    assert ada in users(everything)
    assert users(bound) == []
    read_only = call(
        served("--book"),
        new_api(read_only=True).key,
        lambda client: client.call_tool("hold_time", {"user_ids": [ada], **TIME}),
    )
    assert read_only.is_error
    assert "read" in text(read_only)


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer alm_unknown"}, {"Authorization": "Basic YQ=="}]
)
def test_without_a_valid_key_nothing_is_answered(served, headers):
    with requests.Session() as session:
        session.trust_env = False
        refused = session.post(
            served("--book"),
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
            headers=headers,
            timeout=30,
        )

    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert "key" in refused.json()["error"]
    assert "alm_unknown" not in refused.text


def test_without_the_option_no_tool_books(served, new_api):
    key = new_api().key

    async def named(client: Client) -> set[str]:
        return {tool.name for tool in (await client.list_tools()).tools}

    reading, booking = call(served(), key, named), call(served("--book"), key, named)

    assert booking - reading == {"hold_time", "release_hold", "book_held_time"}


def test_the_client_of_booking_sends_no_other_change():
    # No server listens on this port: a request that was sent would fail in another way.
    event = {"start": "2036-12-03T09:00Z", "end": "2036-12-03T10:00Z"}
    with booking_client() as http_client:
        almanac = Almanac("http://127.0.0.1:9", "key", http_client=http_client)
        for change in (
            lambda: almanac.users.delete("ada"),
            lambda: almanac.events.create("ada", "google", "primary", **event),
            lambda: almanac.events.create("ada", "google", "primary", if_free=True, **event),
            lambda: almanac.events.delete("ada", "google", "primary", "event"),
            lambda: almanac.users.create("ada"),
        ):
            with pytest.raises(PermissionError, match="more than reading and booking"):
                change()
