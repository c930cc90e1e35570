"""The command line."""

from __future__ import annotations

import logging
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from sqlalchemy.exc import DatabaseError

from app.cli import inspect
from app.cli.admins import admins
from app.cli.common import FLOWER_PORT, PORT, become, data_option, host_option
from app.cli.common import settings as _settings
from app.cli.db import db
from app.cli.grants import grants
from app.cli.keys import keys
from store.config.data_folder import make_private
from store.config.embedded_redis import NoRedis
from store.config.settings import SettingsError, read_log_settings
from store.sql.database import MigrationBlocked
from store.stores import Stores
from workers.settings import read_settings
from workers.telemetry import logs

SANDBOX_PORT = 8090
BOOKING_PORT = 8091
MCP_PORT = 8092


class Almanac(click.Group):
    """Prints errors that the operator can fix as one line, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SettingsError, NoRedis, MigrationBlocked) as error:
            raise click.ClickException(str(error)) from error
        except DatabaseError as error:
            raise click.ClickException(
                f"The database does not answer as it should ({type(error.orig).__name__}): check "
                "ALMANAC_DATABASE_URL, and run `almanac db upgrade`"
            ) from error


@click.group(cls=Almanac)
@click.option("--verbose", is_flag=True, help="Log more, to standard error.")
@click.version_option(package_name="almanac", message="%(prog)s %(version)s", help="Print the version.")
def main(verbose: bool) -> None:
    """Availability over Google Calendar, Microsoft 365, CalDAV and feeds.

    `almanac demo` starts a demo, `almanac up` runs everything on this machine. The other commands run its
    parts, manage them, or check them. Settings come from the environment (ALMANAC_...);
    docs/reference/settings.md lists them.
    """
    settings = read_log_settings()
    if verbose and settings.log_level > logging.INFO:
        # Processes that this one starts, or becomes, read the variable.
        os.environ["ALMANAC_LOG_LEVEL"] = "info"
        # Both the variable and its file would be an error.
        os.environ.pop("ALMANAC_LOG_LEVEL_FILE", None)
        settings = read_log_settings()
    logs.configure(Path(sys.argv[0]).name, settings)


@main.command()
@click.option("--port", default=PORT, show_default=True, help="Port of the API.")
@click.option("--sandbox", is_flag=True, help="Start the provider sandbox and use it.")
@click.option("--sandbox-port", default=SANDBOX_PORT, show_default=True, help="Port of the sandbox.")
@click.option("--flower", is_flag=True, help="Start Flower, which shows the workers and their tasks.")
@click.option("--flower-port", default=FLOWER_PORT, show_default=True, help="Port of Flower.")
@host_option
@data_option
def up(
    port: int,
    sandbox: bool,
    sandbox_port: int,
    flower: bool,
    flower_port: int,
    host: str,
    data: Path | None,
) -> None:
    """Run everything on this machine.

    Starts web, two workers and beat, with SQLite and an embedded Redis unless ALMANAC_DATABASE_URL and
    ALMANAC_REDIS_URL are set. Migrates the database first. Runs until Ctrl-C.
    """
    from app.cli import administrator_setup
    from app.server.supervisor import Supervisor

    if data is not None:
        os.environ["ALMANAC_DATA_DIR"] = str(data)
    ports = (port, sandbox_port if sandbox else None, flower_port if flower else None)
    with Supervisor(*ports, host=host) as supervisor:
        with Stores(read_settings()) as stores:
            first = administrator_setup.first_link(stores, supervisor.url)
        click.echo(f"Almanac is ready on {supervisor.url} (API description: {supervisor.url}/v1/docs)")
        click.echo(f"Dashboard: {supervisor.url}/dashboard")
        if supervisor.flower is not None:
            click.echo(f"Flower: {supervisor.flower}")
        if first is not None:
            click.echo(f"Become its first administrator by this link, once and within a day:\n  {first}")
        supervisor.wait()


@main.command()
@click.option("--port", default=PORT, show_default=True, help="Port of the API.")
@click.option("--sandbox-port", default=SANDBOX_PORT, show_default=True, help="Port of the sandbox.")
@click.option("--booking-port", default=BOOKING_PORT, show_default=True, help="Port of the booking page.")
@host_option
def demo(port: int, sandbox_port: int, booking_port: int, host: str) -> None:
    """Run everything, with the sandbox and demo data.

    Prints an API key, an example request, how to sign in to the dashboard, and the address of a booking page.
    Runs until Ctrl-C, and keeps no data.
    """
    from app.cli.demo import run

    run(port, sandbox_port, booking_port, host)


@main.command()
@host_option
@click.option("--port", default=PORT, show_default=True, help="The port to listen on.")
@click.option(
    "--processes",
    default=2,
    show_default=True,
    help="Number of web processes; each handles up to 208 concurrent requests.",
)
@data_option
def serve(host: str, port: int, processes: int, data: Path | None) -> None:
    """Run the web tier: API and dashboard."""
    from app.server.commands import web
    from app.server.ports import require_free

    _settings(data)
    require_free(host, {"--port": port})
    become(web(host, port, processes))


@main.command()
@click.option("--name", help="Name of the worker; the default is unique.")
@data_option
def worker(name: str | None, data: Path | None) -> None:
    """Run one worker process; run as many as you need.

    Only workers call Google and Microsoft. A worker consumes all queues. On SIGTERM it finishes its current
    tasks and exits.
    """
    from app.server.commands import worker as command

    # Workers of the same name would take each other's control messages.
    become(command(_settings(data), name or f"worker{os.getpid()}"))


@main.command()
@data_option
def beat(data: Path | None) -> None:
    """Run the scheduler; an installation needs exactly one.

    It sends tasks that are due: token renewal, push channels, webhook retries.
    """
    from app.server.commands import beat as command

    settings = _settings(data)
    # Beat stores its schedule there.
    make_private(settings.data_dir)
    become(command(settings))


@main.command()
@click.option("--port", default=SANDBOX_PORT, show_default=True, help="The port to listen on.")
@click.option("--settings", "prints", is_flag=True, help="Print the settings that lead to it, and exit.")
@host_option
def sandbox(port: int, prints: bool, host: str) -> None:
    """Run the sandbox, which emulates Google and Microsoft.

    It is for development and tests. POST /sandbox/accounts creates an account, and the sandbox has its own
    consent page. `almanac up --sandbox` starts it and points the settings at it. With --settings, the command
    prints these settings as lines of an environment file, for an Almanac that runs apart from the sandbox.
    """
    from app.server.commands import sandbox as command
    from app.server.ports import require_free
    from app.server.supervisor import HOST, HOSTS, sandbox_environment

    if prints:
        for name, value in sandbox_environment(f"http://{HOST if host in HOSTS else host}:{port}").items():
            click.echo(f"{name}={value}")
        return
    require_free(host, {"--port": port})
    become(command(host, port))


@main.command()
@click.option("--url", default=f"http://127.0.0.1:{PORT}", show_default=True, help="URL of Almanac.")
@click.option("--book", is_flag=True, help="Add tools that hold time and book it.")
@click.option("--http", is_flag=True, help="Serve over HTTP, with the key of each request.")
@click.option("--port", default=MCP_PORT, show_default=True, help="The port to listen on, with --http.")
@host_option
def mcp(url: str, book: bool, http: bool, port: int, host: str) -> None:
    """Run an MCP server for assistants.

    It speaks the Model Context Protocol over standard input and output, with the API key in ALMANAC_API_KEY.
    With --http it serves several people, and each request carries an API key of its own. Without --book, it
    only reads, and a read-only key is enough.
    """
    try:
        from almanac_mcp import server
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error.name} is missing: pip install 'clients/python[mcp]'") from error
    try:
        if http:
            from app.server.ports import require_free

            require_free(host, {"--port": port})
            server.serve_http(url, host, port, booking=book)
        else:
            server.serve(url, booking=book)
    except ValueError as error:
        raise click.ClickException(str(error)) from error


@main.group()
def seed() -> None:
    """Fill the database with demo data."""


@seed.command("demo")
@click.option(
    "--sandbox-url",
    default=f"http://127.0.0.1:{SANDBOX_PORT}",
    show_default=True,
    help="URL of the sandbox that holds the accounts.",
)
@click.option(
    "--from",
    "first",
    type=click.DateTime(["%Y-%m-%d"]),
    help="A day of the first week with events; the default is today.",
)
@data_option
def seed_demo(sandbox_url: str, first: datetime | None, data: Path | None) -> None:
    """Create or reset the demo organization.

    Its accounts are in the sandbox, and its calendars have events in eight weeks.
    """
    import requests

    from app.cli.demo import seed as fill

    with Stores(_settings(data)) as stores:
        try:
            fill(stores, sandbox_url, report=click.echo, first=first and first.date())
        except requests.ConnectionError as error:
            raise click.ClickException(
                f"No sandbox answers at {sandbox_url}. Start one with almanac up --sandbox, or name its "
                "address with --sandbox-url."
            ) from error


for command in (db, keys, admins, grants, inspect.flower, inspect.healthy, inspect.doctor):
    main.add_command(command)
