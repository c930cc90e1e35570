"""The command line."""

from __future__ import annotations

import logging
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
from sqlalchemy.exc import DatabaseError

from app.cli import inspect
from app.cli.admins import admins
from app.cli.common import FLOWER_PORT, PORT, become, data_option
from app.cli.common import settings as _settings
from app.cli.db import db
from store.config import log_settings
from store.config.embedded_redis import NoRedis
from store.config.settings import SettingsError, make_data_dir, new_secrets, read_settings
from store.security.api_keys import visible_part
from store.sql.models import ApiKey, now
from store.sql.queries import api_keys, audit, organizations
from store.stores import Stores
from workers.telemetry import logs

SANDBOX_PORT = 8090


class Almanac(click.Group):
    """Prints errors that the operator can fix as one line, without a traceback."""

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
@click.option("--verbose", is_flag=True, help="Log more, to standard error.")
def main(verbose: bool) -> None:
    """Calendar availability over Google Calendar and Microsoft 365.

    `almanac demo` shows it, `almanac up` runs everything on this machine; the other commands run its parts,
    manage them, or look at them. Settings come from the environment (ALMANAC_...); docs/settings.md has
    each of them.
    """
    settings = log_settings.read_log_settings()
    if verbose and settings.level > logging.INFO:
        # Processes that this one starts, or becomes, read the variable.
        os.environ[log_settings.LEVEL] = "info"
        # Both the variable and its file would be an error.
        os.environ.pop(f"{log_settings.LEVEL}_FILE", None)
        settings = log_settings.read_log_settings()
    logs.configure(Path(sys.argv[0]).name, settings)


@main.command()
@click.option("--port", default=PORT, show_default=True, help="Where the API listens.")
@click.option("--sandbox", is_flag=True, help="Start the provider sandbox and use it.")
@click.option("--sandbox-port", default=SANDBOX_PORT, show_default=True, help="Where the sandbox listens.")
@click.option("--flower", is_flag=True, help="Start Flower, which shows the workers and their tasks.")
@click.option("--flower-port", default=FLOWER_PORT, show_default=True, help="Where Flower listens.")
@data_option
def up(
    port: int, sandbox: bool, sandbox_port: int, flower: bool, flower_port: int, data: Path | None
) -> None:
    """Run everything on this machine.

    That is web, two workers and beat, with SQLite and a Redis of their own unless ALMANAC_DATABASE_URL and
    ALMANAC_REDIS_URL are set. Migrates first, and runs until Ctrl-C.
    """
    from app.accounts import invitations
    from app.server.supervisor import Supervisor

    if data is not None:
        os.environ["ALMANAC_DATA_DIR"] = str(data)
    with Supervisor(port, sandbox_port if sandbox else None, flower_port if flower else None) as supervisor:
        with Stores(read_settings()) as stores:
            first = invitations.first_link(stores, supervisor.url)
        click.echo(f"Almanac is ready on {supervisor.url} (API description: {supervisor.url}/v1/docs)")
        click.echo(f"Dashboard: {supervisor.url}/dashboard")
        if supervisor.flower is not None:
            click.echo(f"Flower: {supervisor.flower}")
        if first is not None:
            click.echo(f"Become its first administrator by this link, once and within a day:\n  {first}")
        supervisor.wait()


@main.command()
@click.option("--port", default=PORT, show_default=True, help="Where the API listens.")
@click.option("--sandbox-port", default=SANDBOX_PORT, show_default=True, help="Where the sandbox listens.")
def demo(port: int, sandbox_port: int) -> None:
    """Run everything, with the sandbox and demo data.

    Prints an API key, a request that answers, and how to sign in to the dashboard. Runs until Ctrl-C, and
    keeps nothing.
    """
    from app.cli.demo import run

    run(port, sandbox_port)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=PORT, show_default=True, help="The port to listen on.")
@click.option("--processes", default=2, show_default=True, help="Each answers 112 requests at once.")
@data_option
def serve(host: str, port: int, processes: int, data: Path | None) -> None:
    """Run the web tier: API and dashboard."""
    from app.server.commands import web

    _settings(data)
    become(web(host, port, processes))


@main.command()
@click.option("--name", help="What to call it; by default each has a name of its own.")
@data_option
def worker(name: str | None, data: Path | None) -> None:
    """Run one worker process, of as many as you like.

    Workers alone ask Google and Microsoft. Each takes from every queue, and ends on SIGTERM once it has
    finished what it has begun.
    """
    from app.server.commands import worker as command

    # Workers of the same name would take each other's control messages.
    become(command(_settings(data), name or f"worker{os.getpid()}"))


@main.command()
@data_option
def beat(data: Path | None) -> None:
    """Run the clock that starts upkeep, exactly once.

    It sends what is due to the workers: renewing tokens, keeping push going, sending webhooks again.
    """
    from app.server.commands import beat as command

    settings = _settings(data)
    # Beat stores its schedule there.
    make_data_dir(settings.data_dir)
    become(command(settings))


@main.command()
@click.option("--port", default=SANDBOX_PORT, show_default=True, help="The port to listen on.")
def sandbox(port: int) -> None:
    """Run Google and Microsoft, emulated.

    The sandbox is for trying things out: accounts are made by POST /sandbox/accounts, and consent is a page
    of its own. `almanac up --sandbox` starts it and points the settings at it.
    """
    from app.server.commands import sandbox as command

    become(command(port))


@main.group()
def keys() -> None:
    """Manage API keys."""


def _future(_: click.Context, __: click.Parameter, text: str | None) -> datetime | None:
    from app.schemas import timestamps

    if text is None:
        return None
    try:
        milliseconds = timestamps.parse(text).milliseconds(ZoneInfo("UTC"))
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
    """Create a key and print it.

    It is alone on standard output, and cannot be shown again. NAME is for your own records.
    """
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
        visible = visible_part(key, stores.settings.api_key_prefix)
        audit.record(session, actor=audit.COMMAND_LINE, action="createKey", subject=visible)
    click.echo(key)


@keys.command("list")
@data_option
def list_keys(data: Path | None) -> None:
    """List the keys, each by its visible part.

    Beside it: its name, reach, rights, whether it is in force, and its last use.
    """
    with Stores(_settings(data)) as stores, stores.database.reading() as session:
        for key in api_keys.every(session):
            reach = key.organization.slug if key.organization else "everything"
            rights = "read-only" if key.read_only else "full"
            if key.shows_tokens:
                rights += ", shows tokens"
            click.echo(f"{key.visible}…  {key.name}  {reach}  {rights}  {_state(key)}  {_last_use(key)}")


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "in force"
    if key.expires_at <= now():
        return "expired"
    return f"in force until {key.expires_at:%Y-%m-%dT%H:%M:%SZ}"


def _last_use(key: ApiKey) -> str:
    return "never used" if key.last_used_at is None else f"last used {key.last_used_at:%Y-%m-%dT%H:%MZ}"


@keys.command("revoke")
@click.argument("key")
@data_option
def revoke_key(key: str, data: Path | None) -> None:
    """Revoke keys.

    KEY is a name (all keys of that name are revoked), a visible part, or the whole key.
    """
    with Stores(_settings(data)) as stores, stores.database.writing() as session:
        revoked = api_keys.revoke(session, key, prefix=stores.settings.api_key_prefix)
        for visible in revoked:
            audit.record(session, actor=audit.COMMAND_LINE, action="revokeKey", subject=visible)
    if not revoked:
        raise click.ClickException("No key in force has that name or visible part")
    click.echo(f"{len(revoked)} {'key' if len(revoked) == 1 else 'keys'} revoked")


@keys.command("secrets")
@click.option(
    "--to",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the files that docker-compose.yml takes instead; those that are there stay.",
)
def print_secrets(to: Path | None) -> None:
    """Print fresh secrets for the settings.

    Those are ALMANAC_SECRET_KEY and ALMANAC_ENCRYPTION_KEYS, as lines of an environment file.
    """
    from app.cli.secrets import OpenFolder, write

    if to is not None:
        try:
            written = write(to)
        except (OpenFolder, OSError) as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"Written to {to}: {', '.join(written)}" if written else f"{to} has all of them already")
        return
    secret, encryption = new_secrets()
    click.echo(f"ALMANAC_SECRET_KEY={secret}\nALMANAC_ENCRYPTION_KEYS={encryption}")


@main.command()
@click.option("--url", default=f"http://127.0.0.1:{PORT}", show_default=True, help="Where Almanac is.")
def mcp(url: str) -> None:
    """Let an assistant ask Almanac.

    By the Model Context Protocol, over standard input and output.
    The API key is taken from ALMANAC_API_KEY; a read-only one is enough.
    """
    try:
        from almanac_mcp import server
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error.name} is missing: pip install 'clients/python[mcp]'") from error
    try:
        server.serve(url)
    except ValueError as error:
        raise click.ClickException(str(error)) from error


@main.group()
def seed() -> None:
    """Fill the database for trying things out."""


@seed.command("demo")
@click.option(
    "--sandbox-url",
    default=f"http://127.0.0.1:{SANDBOX_PORT}",
    show_default=True,
    help="Where the sandbox is that holds their accounts.",
)
@data_option
def seed_demo(sandbox_url: str, data: Path | None) -> None:
    """Create the demo organization.

    Or bring it back to its first state; its accounts are in the sandbox.
    """
    from app.cli.demo import seed as fill

    with Stores(_settings(data)) as stores:
        fill(stores, sandbox_url, report=click.echo)


for command in (db, admins, inspect.flower, inspect.healthy, inspect.doctor):
    main.add_command(command)
