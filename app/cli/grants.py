"""The commands for grants of organizations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import data_option, installed
from providers import registry
from providers.directory import KINDS, Kind
from store.sql.queries import audit
from store.sql.queries.api_keys import Caller

if TYPE_CHECKING:
    from app.accounts.directory_import import Plan

# A list of more lines is cut, unless --all is given.
MOST_LINES = 50


@click.group()
def grants() -> None:
    """Manage grants of organizations."""


ONE_KIND = ". For people alone, or rooms alone, use --kind user or --kind room"


@grants.command("import")
@click.argument("organization")
@click.argument("provider", type=click.Choice(registry.with_grant()))
@click.option("--kind", type=click.Choice(KINDS), help="Only people, or only rooms.")
@click.option("--q", "part", default="", metavar="TEXT", help="Only names and addresses with this part.")
@click.option("--all", "whole", is_flag=True, help=f"Print whole lists, not only {MOST_LINES} lines of each.")
@click.option("--yes", is_flag=True, help="Import the new ones. Without it, nothing is changed.")
@data_option
def import_directory(
    organization: str, provider: str, kind: Kind | None, part: str, whole: bool, yes: bool, data: Path | None
) -> None:
    """Import the directory of an organization as its members.

    Shows new and known entries, and which members are in no directory any more. Nothing is changed
    without --yes. With it, the new ones become members, a thousand at once. It never removes a member.
    It needs a running worker, and can be repeated.
    """
    from kombu.exceptions import OperationalError as BrokerError
    from redis.exceptions import RedisError

    from app.accounts import directory_import
    from app.http.errors import ApiError, overloaded
    from app.schemas.error_codes import Code
    from workers.fanout.admission import Overloaded

    caller = Caller(0, audit.COMMAND_LINE, None, read_only=False, shows_tokens=False)
    with _services(data):
        try:
            plan = directory_import.plan(caller, organization, provider, kind, part)
            _show(plan, most_lines=None if whole else MOST_LINES)
            done = 0
            if not yes:
                click.echo("Nothing was changed. Import the new ones with --yes.")
                plan = plan._replace(new=[])
            for number in directory_import.carry_out(caller, organization, provider, plan.new):
                done += number
                click.echo(f"Imported: {done} of {len(plan.new)}")
        except ApiError as error:
            partial = kind is None and error.code is Code.INSUFFICIENT_SCOPES
            raise click.ClickException(error.error + (ONE_KIND if partial else "")) from error
        except Overloaded as error:
            raise click.ClickException(overloaded(error).error) from error
        except (RedisError, BrokerError) as error:
            raise click.ClickException(
                f"Redis or the broker is not reached: {type(error).__name__}"
            ) from error
    if plan.more:
        raise click.ClickException("The directory has more entries than are read at once: narrow it by --q")


@contextmanager
def _services(data: Path | None) -> Iterator[None]:
    """The services of an app without routes, for code that asks the app for them."""
    from flask import Flask

    from app import services

    app = Flask("almanac")
    services.install(app, installed(data))
    with app.app_context():
        try:
            yield
        finally:
            services.services().stores.close()


def _show(plan: Plan, most_lines: int | None) -> None:
    new = [
        f"{entry.kind} {entry.email}  {entry.name}"
        + (f"  (replaces the connection of {user_id} by own consent)" if user_id in plan.personal else "")
        for entry, user_id in plan.new
    ]
    _list("New", new, most_lines)
    click.echo(f"Known: {len(plan.known)}")
    if plan.refused:
        _list("No members", [f"{entry.kind} {entry.email}  {why}" for entry, why in plan.refused], most_lines)
    if plan.gone is None:
        click.echo("In no directory any more: not compared, because only a part was read")
    else:
        _list("In no directory any more", [f"{each.user_id}  {each.email}" for each in plan.gone], most_lines)


def _list(title: str, lines: Sequence[str], most_lines: int | None) -> None:
    click.echo(f"{title}: {len(lines)}")
    shown = lines[:most_lines]
    for line in shown:
        click.echo(f"  {line}")
    if len(lines) > len(shown):
        click.echo(f"  and {len(lines) - len(shown)} more: --all prints them")
