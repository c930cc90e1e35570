"""The commands that observe an installation: Flower, the health check of one part, and the doctor."""

from __future__ import annotations

import os
from pathlib import Path

import click

from app.cli.common import FLOWER_PORT, become, data_option, host_option, settings


@click.command()
@host_option
@click.option("--port", default=FLOWER_PORT, show_default=True, help="The port to listen on.")
@click.option("--url-prefix", default="", metavar="PATH", help="Path of Flower in a proxy, such as /flower.")
@data_option
def flower(host: str, port: int, url_prefix: str, data: Path | None) -> None:
    """Run Flower, which shows workers and tasks.

    Flower is read-only. Sign in with ALMANAC_FLOWER_USER (almanac) and ALMANAC_FLOWER_PASSWORD. Without a
    password, Flower listens only on this machine, and prints a generated one.
    """
    from app.server import commands
    from app.server.flower import address_and_sign_in, environment, sign_in
    from app.server.ports import require_free
    from store.config.settings import read_flower_settings

    if data is not None:
        os.environ["ALMANAC_DATA_DIR"] = str(data)
    credentials = sign_in(read_flower_settings(), host)
    require_free(host, {"--port": port})
    if credentials.generated:
        click.echo(f"Flower: {address_and_sign_in(credentials, host, port, url_prefix)}")
    become(commands.flower(host, port, url_prefix), environment(os.environ, credentials))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, at the end.")
@data_option
def doctor(as_json: bool, data: Path | None) -> None:
    """Find problems, and say how to fix them.

    Checks the settings, database, Redis, encryption keys, clocks, broker, workers, beat, the registrations
    with the providers, and the public address. Exit status 1 if any check fails; warnings do not change it.
    """
    from app.cli.doctor.report import report

    if not report(lambda: settings(data), click.echo, as_json=as_json, data_dir=data):
        raise SystemExit(1)


@click.command()
@click.argument("part", type=click.Choice(["web", "worker", "beat", "flower"]))
@click.option("--port", type=int, help="Port of web or Flower (8080, 5555).")
@click.option("--url-prefix", default="", metavar="PATH", help="As for almanac flower.")
@data_option
def healthy(part: str, port: int | None, url_prefix: str, data: Path | None) -> None:
    """Exit with status 0 if a part on this host is alive.

    For the health checks of containers: web and flower must answer on their ports, worker through the
    broker, and beat must have ticked within a minute. A worker that cannot reach a provider while others
    can is alive, with a warning. Use /readyz or `almanac doctor` to check whether the
    parts work together.
    """
    from app.cli.container_health import NotAlive, check, cut_off

    try:
        check(part, port, url_prefix, data)
    except NotAlive as error:
        raise click.ClickException(str(error)) from error
    if part == "worker":
        for sentence in cut_off(data):
            click.echo(f"Warning: {sentence}", err=True)
