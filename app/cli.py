"""The command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import click
from sqlalchemy.exc import DatabaseError

from app import logs
from store.embedded_redis import NoRedis
from store.models import ApiKey, now
from store.queries import api_keys, organizations
from store.settings import Settings, SettingsError, new_secrets, read_settings
from store.stores import Stores

Command = TypeVar("Command", bound=Callable[..., Any])

SANDBOX_PORT = 8090
PORT = 8080


class Almanac(click.Group):
    """Errors that a person can mend are one line, not a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SettingsError, NoRedis) as error:
            raise click.ClickException(str(error)) from error
        except DatabaseError as error:
            raise click.ClickException(
                f"The database does not answer as it should ({type(error.orig).__name__}): check "
                "ALMANAC_DATABASE_URL, and run `almanac db upgrade`"
            ) from error


@click.group(cls=Almanac)
@click.option("--verbose", is_flag=True, help="Log more.")
def main(verbose: bool) -> None:
    """Calendar availability over Google Calendar and Microsoft 365.

    `almanac up` runs everything on this machine; the other commands run or manage its parts. Settings
    come from the environment (ALMANAC_...).
    """
    logs.configure(Path(sys.argv[0]).name, verbose=verbose)


def data_option(command: Command) -> Command:
    """``--data``, for commands that read settings."""
    return click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        help="Data folder of the embedded default (ALMANAC_DATA_DIR).",
    )(command)


def _settings(data: Path | None) -> Settings:
    if data is not None:
        # The processes that we start read it too.
        os.environ["ALMANAC_DATA_DIR"] = str(data)
    return read_settings(data)


@main.command()
@click.option("--port", default=PORT, show_default=True, help="Where the API listens.")
@click.option("--sandbox", is_flag=True, help="Start the provider sandbox and use it.")
@click.option("--sandbox-port", default=SANDBOX_PORT, show_default=True)
@data_option
def up(port: int, sandbox: bool, sandbox_port: int, data: Path | None) -> None:
    """Run web, worker and beat on this machine; Redis and SQLite too, unless their URLs are set."""
    from app.up import Everything

    if data is not None:
        os.environ["ALMANAC_DATA_DIR"] = str(data)
    with Everything(port, sandbox_port if sandbox else None) as everything:
        click.echo(f"Almanac is ready on {everything.url} (API description: {everything.url}/v1/docs)")
        everything.wait()


@main.command()
@click.option("--port", default=PORT, show_default=True)
@click.option("--sandbox-port", default=SANDBOX_PORT, show_default=True)
def demo(port: int, sandbox_port: int) -> None:
    """Run everything with the sandbox and a demo organization, until Ctrl-C; nothing is kept."""
    from app.demo import run

    run(port, sandbox_port)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=PORT, show_default=True)
@click.option("--processes", default=2, show_default=True)
@data_option
def serve(host: str, port: int, processes: int, data: Path | None) -> None:
    """Run the web tier."""
    from app.processes import web

    _settings(data)
    _become(web(host, port, processes))


@main.command()
@click.option("--name", default="worker", show_default=True, help="Tells workers of one host apart.")
@data_option
def worker(name: str, data: Path | None) -> None:
    """Run one worker process; run as many as you like."""
    from app.processes import worker as command

    _become(command(_settings(data), name))


@main.command()
@data_option
def beat(data: Path | None) -> None:
    """Run the clock that starts upkeep tasks; exactly one."""
    from app.processes import beat as command

    _become(command(_settings(data)))


@main.command()
@click.option("--port", default=SANDBOX_PORT, show_default=True)
def sandbox(port: int) -> None:
    """Run the provider sandbox: Google and Microsoft emulated, for trying things out."""
    from app.processes import sandbox as command

    _become(command(port))


@main.group()
def db() -> None:
    """Manage the database."""


@db.command()
@data_option
def upgrade(data: Path | None) -> None:
    """Run every migration that is missing."""
    with Stores(_settings(data)) as stores:
        stores.database.upgrade()
    click.echo("The database is up to date")


@main.group()
def keys() -> None:
    """Manage API keys."""


def _future(_: click.Context, __: click.Parameter, written: str | None) -> datetime | None:
    from app import timestamps

    if written is None:
        return None
    try:
        milliseconds = timestamps.parse(written).milliseconds(ZoneInfo("UTC"))
    except timestamps.NotATimestamp as error:
        raise click.BadParameter(str(error)) from error
    moment = timestamps.EPOCH + milliseconds * timestamps.MILLISECOND
    if moment <= now():
        raise click.BadParameter("must lie in the future")
    return moment


@keys.command("create")
@click.argument("name")
@click.option("--organization", metavar="SLUG", help="Bind the key to one organization.")
@click.option("--read-only", is_flag=True, help="The key may not change anything.")
@click.option("--show-tokens", is_flag=True, help="The key may reveal access and refresh tokens.")
@click.option(
    "--expires",
    metavar="WHEN",
    callback=_future,
    help="From when the key is refused: an ISO 8601 date or date-time, in UTC unless it has an offset.",
)
@data_option
def create_key(
    name: str,
    organization: str | None,
    read_only: bool,
    show_tokens: bool,
    expires: datetime | None,
    data: Path | None,
) -> None:
    """Create a key and print it, alone, on standard output. It cannot be shown again."""
    with Stores(_settings(data)) as stores, stores.database.writing() as session:
        organization_id = None
        if organization is not None:
            organization_id = organizations.ids(session, [organization], within=None).get(organization)
            if organization_id is None:
                raise click.ClickException(f"There is no organization {organization}")
        key = api_keys.create(
            session,
            prefix=stores.settings.api_key_prefix,
            name=name,
            organization_id=organization_id,
            read_only=read_only,
            shows_tokens=show_tokens,
            expires_at=expires,
        )
    click.echo(key)


@keys.command("list")
@data_option
def list_keys(data: Path | None) -> None:
    """List keys by their visible part, with their reach, their rights, and whether they are in force."""
    with Stores(_settings(data)) as stores, stores.database.reading() as session:
        for key in api_keys.every(session):
            reach = key.organization.slug if key.organization else "everything"
            rights = "read-only" if key.read_only else "full"
            if key.shows_tokens:
                rights += ", shows tokens"
            click.echo(f"{key.visible}…  {key.name}  {reach}  {rights}  {_state(key)}")


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "in force"
    if key.expires_at <= now():
        return "expired"
    return f"in force until {key.expires_at:%Y-%m-%dT%H:%M:%SZ}"


@keys.command("revoke")
@click.argument("key")
@data_option
def revoke_key(key: str, data: Path | None) -> None:
    """Revoke keys by name, by visible part, or by the whole key."""
    with Stores(_settings(data)) as stores, stores.database.writing() as session:
        revoked = api_keys.revoke(session, key, prefix=stores.settings.api_key_prefix)
    if not revoked:
        raise click.ClickException("No key in force has that name or visible part")
    click.echo(f"{revoked} {'key' if revoked == 1 else 'keys'} revoked")


@keys.command("secrets")
def print_secrets() -> None:
    """Print fresh values for ALMANAC_SECRET_KEY and ALMANAC_ENCRYPTION_KEYS."""
    secret, encryption = new_secrets()
    click.echo(f"ALMANAC_SECRET_KEY={secret}\nALMANAC_ENCRYPTION_KEYS={encryption}")


@main.group()
def seed() -> None:
    """Fill the database for trying things out."""


@seed.command("demo")
@click.option("--sandbox-url", default=f"http://127.0.0.1:{SANDBOX_PORT}", show_default=True)
@data_option
def seed_demo(sandbox_url: str, data: Path | None) -> None:
    """Create the demo organization, with accounts in the sandbox."""
    from app.demo import seed as fill

    with Stores(_settings(data)) as stores:
        fill(stores, sandbox_url, report=click.echo)


def _become(command: list[str]) -> None:
    """Let this process be the command, so that signals reach it."""
    os.execv(command[0], command)
