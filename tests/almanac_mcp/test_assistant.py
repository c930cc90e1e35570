"""``almanac mcp`` in its own process, called through the client of the protocol's SDK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult

from almanac_client import Almanac
from almanac_mcp.allowed_requests import read_only_client
from providers.sandbox.client import Sandbox
from tests.app.days import meeting
from tests.conftest import Api
from tests.installation.processes import web_server

# Needs a whole installation: too slow for the default run.
pytestmark = pytest.mark.long

DAY = {"start": "2026-12-03", "end": "2026-12-04", "time_zone": "Europe/Berlin"}
MORNING = DAY | {"slot_minutes": 60, "earliest": "09:00", "latest": "12:00"}
ALMANAC = [sys.executable, "-c", "from app.cli.main import main; main()", "mcp"]

Ask = Callable[..., CallToolResult]


@pytest.fixture(scope="module")
def base_url(environment: dict[str, str], database: object, worker: None) -> Iterator[str]:
    """A real server."""
    with web_server(environment, count=1) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def server(base_url: str, new_api: Callable[..., Api]) -> StdioServerParameters:
    """How an assistant starts the server, with a key that may only read."""
    command, *words = ALMANAC
    key = new_api(read_only=True).key
    return StdioServerParameters(
        command=command, args=[*words, "--url", base_url], env={"ALMANAC_API_KEY": key}
    )


@pytest.fixture
def ask(server: StdioServerParameters) -> Ask:
    """Call a tool of a server that is started for the call."""

    async def call(tool: str, arguments: dict[str, Any]) -> CallToolResult:
        async with Client(server, read_timeout_seconds=60) as client:
            return await client.call_tool(tool, arguments)

    return lambda tool, **arguments: asyncio.run(call(tool, arguments))


@pytest.fixture
def ada(
    sandbox: Sandbox, new_user: Callable[..., str], new_organization: Callable[[], str]
) -> tuple[str, str]:
    """A user who is busy from 10:00 to 11:00 in Berlin, and her organization."""
    slug = new_organization()
    account = sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")])
    return new_user(account, name="ada", slugs=(slug,)), slug


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert block.type == "text"
    return block.text


def test_free_slots_are_returned_as_text_and_as_data(ask, ada):
    user, slug = ada
    expected = ["Thu 3 Dec 09:00-10:00", "Thu 3 Dec 11:00-12:00"]

    one = ask("find_free_slots_of_user", user_id=user, **MORNING)
    assert text(one).splitlines() == ["2 free slots:", *expected]
    assert [slot["start"] for slot in one.structured_content["slots"]] == [
        "2026-12-03T08:00:00Z",
        "2026-12-03T10:00:00Z",
    ]
    several = ask("find_free_slots_of_users", user_ids=[user], **MORNING)
    everybody = ask("find_free_slots_of_organization", organization=slug, most=1, **MORNING)

    assert text(several).splitlines()[1:] == [f"{line} {user}" for line in expected]
    assert text(everybody).splitlines() == ["2 free slots; the first 1:", f"{expected[0]} {user}"]
    assert everybody.structured_content["total"] == 2


def test_busy_times_and_reasons_are_returned(ask, ada):
    user, slug = ada
    at = {"at": "2026-12-03T10:30", **MORNING}

    assert text(ask("busy_times_of_user", user_id=user, **DAY)) == "1 busy period:\nThu 3 Dec 10:00-11:00"
    assert text(ask("busy_times_of_organization", organization=slug, **DAY)).endswith("10:00-11:00")
    why = ask("why_user_is_not_offered", user_id=user, **at)
    assert why.structured_content["reason"] == "busy"
    assert text(why) == why.structured_content["sentence"]
    assert text(ask("why_organization_is_not_offered", organization=slug, **at)).startswith(f"{user}: 10:30")


def test_users_and_organizations_are_returned(ask, ada):
    user, slug = ada

    assert user in ask("list_users", most=500).structured_content["users"]
    assert f"{slug}: {user}" in text(ask("list_organizations", most=500)).splitlines()


def test_working_hours_are_returned(ask, ada, new_api):
    user, _ = ada
    stated = {
        "timeZone": "Asia/Tokyo",
        "schedules": [{"days": ["monday", "friday"], "start": "09:00", "end": "17:00"}],
        "overrides": [{"date": "2026-12-24", "windows": []}],
        "minimumNotice": 60,
    }
    assert "any time counts" in text(ask("working_hours_of_user", user_id=user))
    assert new_api().put(f"/users/{user}/availability", stated).status_code == 200

    hours = ask("working_hours_of_user", user_id=user)

    assert text(hours).splitlines() == [
        "Hours in Asia/Tokyo:",
        "monday, friday: 09:00-17:00",
        "2026-12-24: closed",
    ]
    assert hours.structured_content == stated


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("find_free_slots_of_organization", MORNING),
        ("busy_times_of_organization", DAY),
        ("why_organization_is_not_offered", MORNING | {"at": "2026-12-03T10:30"}),
    ],
)
def test_unreadable_calendars_are_named_first(ask, ada, sandbox, tool, arguments):
    user, slug = ada
    sandbox.fault(provider="google", status=503)

    result = ask(tool, organization=slug, **arguments)

    first, second, *_ = text(result).splitlines()
    assert first.startswith(f"Could not be read: {user} (")
    assert "unknown, not free" in second
    assert result.structured_content["complete"] is False
    assert [each["customId"] for each in result.structured_content["failedUsers"]] == [user]


def test_slots_of_unreadable_user_are_an_error(ask, ada, sandbox):
    sandbox.fault(provider="google", status=503)

    result = ask("find_free_slots_of_user", user_id=ada[0], **MORNING)

    assert result.is_error
    assert "Google" in text(result)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"user_id": "nobody-at-all"}, "User not found"),
        ({"end": "2026-12-01"}, "end"),
        ({"time_zone": "Mars/Olympus"}, "must be a time zone name"),
        ({"user_id": ".."}, "an id is not"),
    ],
)
def test_what_is_wrong_is_a_sentence(ask, ada, changed, said):
    result = ask("find_free_slots_of_user", **{"user_id": ada[0], **MORNING, **changed})

    assert result.is_error
    assert said in text(result)


def test_every_tool_has_a_read_only_hint(server):
    async def tools() -> Any:
        async with Client(server, read_timeout_seconds=60) as client:
            return (await client.list_tools()).tools

    found = asyncio.run(tools())

    assert len(found) == 10
    for tool in found:
        assert tool.annotations.read_only_hint, tool.name
        assert tool.description, tool.name
        assert "self" not in tool.input_schema["properties"], tool.name


@pytest.mark.parametrize(
    "change",
    [
        lambda almanac: almanac.users.create("ada"),
        lambda almanac: almanac.users.delete("ada"),
        lambda almanac: almanac.users.rename("ada", "ada2"),
        lambda almanac: almanac.events.create("ada", "google", "users", start="2026-12-03", end="2026-12-04"),
        lambda almanac: almanac.connections.authorize("ada", "google"),
    ],
)
def test_nothing_can_be_changed_through_its_http_client(change):
    # No server listens on this port: a request that was sent would fail in another way.
    with read_only_client() as http_client:
        almanac = Almanac("http://127.0.0.1:9", "key", http_client=http_client)
        with pytest.raises(PermissionError, match="more than reading"):
            change(almanac)


def test_its_http_client_reads(base_url, new_api):
    key = new_api(read_only=True).key
    with read_only_client() as http_client, Almanac(base_url, key, http_client=http_client) as almanac:
        asked = almanac.scheduling.users(["nobody-at-all"], start="2026-12-03", end="2026-12-04")
        assert asked.failed_users[0].message == "User not found"
        with pytest.raises(PermissionError):
            http_client.request("PURGE", base_url)


@pytest.mark.parametrize(
    ("environment_", "words", "said"),
    [
        ({}, [], "Set ALMANAC_API_KEY"),
        ({"ALMANAC_API_KEY": "alm_secret"}, ["--url", "almanac.example.com"], "https://"),
    ],
)
def test_command_without_key_or_address_exits_with_advice(environment, environment_, words, said):
    clean = {name: value for name, value in environment.items() if not name.startswith("ALMANAC_")}
    ended = subprocess.run(
        [*ALMANAC, *words], env=clean | environment_, capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 1
    assert said in ended.stderr
    assert ended.stdout == ""
    assert "alm_secret" not in ended.stderr
