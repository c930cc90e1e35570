"""The commands for the dashboard's administrators."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.common import PORT, data_option, settings
from store.sql.queries import administrators, audit
from store.stores import Stores


@click.group()
def admins() -> None:
    """Manage who may sign in to the dashboard."""


@admins.command("invite")
@click.option("--url", help="Where the dashboard is (ALMANAC_PUBLIC_URL, else this machine).")
@data_option
def invite_administrator(url: str | None, data: Path | None) -> None:
    """Print a link that makes an administrator.

    It works once, within a day.
    """
    from app.accounts.invitations import link

    with Stores(settings(data)) as stores:
        click.echo(link(stores, f"http://127.0.0.1:{PORT}", at=url))


@admins.command("create")
@click.argument("name")
@click.password_option(help="Asked for when it is not given.")
@data_option
def create_administrator(name: str, password: str, data: Path | None) -> None:
    """Create an administrator, or give one another password.

    Another password signs out all browsers of that administrator, and forgets failed attempts with that
    name, so that sign-ins with it are allowed at once.
    """
    from app.accounts.invitations import create

    with Stores(settings(data)) as stores:
        try:
            created = create(stores, name, password)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    click.echo(f"{name} can sign in now" if created else f"{name} has another password now")


@admins.command("list")
@data_option
def list_administrators(data: Path | None) -> None:
    """List administrators, the oldest first."""
    with Stores(settings(data)) as stores, stores.database.reading() as session:
        for each in administrators.every(session):
            click.echo(f"{each.name}  since {each.created_at:%Y-%m-%dT%H:%M:%SZ}")


@admins.command("remove")
@click.argument("name")
@data_option
def remove_administrator(name: str, data: Path | None) -> None:
    """Remove an administrator.

    All browsers of that administrator are signed out, and every open invitation is withdrawn.
    """
    with Stores(settings(data)) as stores, stores.database.writing() as session:
        found = administrators.find(session, name)
        if found is None:
            raise click.ClickException(f"There is no administrator {name}")
        administrators.remove(session, found.id)
        audit.record(session, actor=audit.COMMAND_LINE, action="removeAdministrator", subject=name)
    click.echo(f"{name} is removed, and every open invitation withdrawn")
