"""The command line."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

import click
from sqlalchemy.exc import DatabaseError

from app.cli import inspect
from app.cli.admins import admins
from app.cli.common import FLOWER_PORT, PORT, become, data_option, host_option
from app.cli.common import settings as _settings
from app.cli.db import db
from app.cli.keys import keys
from store.config import log_settings
from store.config.embedded_redis import NoRedis
from store.config.settings import SettingsError, make_data_dir, read_settings
from store.stores import Stores
from workers.telemetry import logs

SANDBOX_PORT = 8090
BOOKING_PORT = 8091


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
    manage them, or look at them. Settings come from the environment (ALMANAC_...); docs/reference/settings.md
    has each of them.
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

    That is web, two workers and beat, with SQLite and a Redis of their own unless ALMANAC_DATABASE_URL and
    ALMANAC_REDIS_URL are set. Migrates first, and runs until Ctrl-C.
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
@click.option("--port", default=PORT, show_default=True, help="Where the API listens.")
@click.option("--sandbox-port", default=SANDBOX_PORT, show_default=True, help="Where the sandbox listens.")
@click.option(
    "--booking-port", default=BOOKING_PORT, show_default=True, help="Where the booking page listens."
)
@host_option
def demo(port: int, sandbox_port: int, booking_port: int, host: str) -> None:
    """Run everything, with the sandbox and demo data.

    Prints an API key, a request that answers, how to sign in to the dashboard, and the address of a booking
    page. Runs until Ctrl-C, and keeps nothing.
    """
    from app.cli.demo import run

    run(port, sandbox_port, booking_port, host)


@main.command()
@host_option
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
@host_option
def sandbox(port: int, host: str) -> None:
    """Run Google and Microsoft, emulated.

    The sandbox is for trying things out: accounts are made by POST /sandbox/accounts, and consent is a page
    of its own. `almanac up --sandbox` starts it and points the settings at it.
    """
    from app.server.commands import sandbox as command

    become(command(host, port))


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
    import requests

    from app.cli.demo import seed as fill

    with Stores(_settings(data)) as stores:
        try:
            fill(stores, sandbox_url, report=click.echo)
        except requests.ConnectionError as error:
            raise click.ClickException(
                f"No sandbox answers at {sandbox_url}. Start one with almanac up --sandbox, or name its "
                "address with --sandbox-url."
            ) from error


for command in (db, keys, admins, inspect.flower, inspect.healthy, inspect.doctor):
    main.add_command(command)
