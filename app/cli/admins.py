"""The commands for the dashboard's administrators."""

from __future__ import annotations

from pathlib import Path

import click
from sqlalchemy.orm import Session

from app.cli.common import PORT, data_option, installed
from store.sql.models import Administrator, Role
from store.sql.queries import administrators, audit, identities, second_factors
from store.sql.queries.administrators import LastAdministrator
from store.stores import Stores

ROLES = click.Choice([each.value for each in Role])
NO_PASSWORDS = (
    "Passwords are turned off (ALMANAC_PASSWORD_SIGN_IN=false), and the link would ask for one: give the "
    "person a group that ALMANAC_OIDC_ROLES names"
)
LAST = "{} is the last administrator: make another one first"


@click.group()
def admins() -> None:
    """Manage the people who can sign in to the dashboard."""


@admins.command("invite")
@click.option("--url", help="URL of the dashboard (ALMANAC_PUBLIC_URL, else this machine).")
@click.option("--role", type=ROLES, default="administrator", help="Role of the new person (administrator).")
@data_option
def invite_administrator(url: str | None, role: str, data: Path | None) -> None:
    """Print a link with which a person registers.

    The link works once, within a day. The person gets the role of the option.
    """
    from app.cli.administrator_setup import link

    with Stores(installed(data)) as stores:
        if not stores.settings.password_sign_in:
            raise click.ClickException(NO_PASSWORDS)
        click.echo(link(stores, f"http://127.0.0.1:{PORT}", at=url, role=Role(role)))


@admins.command("create")
@click.argument("name")
@click.password_option(help="The command asks for it if it is not given.")
@click.option("--role", type=ROLES, help="Without one, a new person is an administrator.")
@data_option
def create_administrator(name: str, password: str, role: str | None, data: Path | None) -> None:
    """Create a person, or give a person another password.

    Another password signs out all browsers of that person, withdraws their open links and invitations, and
    clears the failed attempts with that name, so that sign-ins are allowed at once.
    """
    from app.cli.administrator_setup import create

    with Stores(installed(data)) as stores:
        try:
            created = create(stores, name, password, None if role is None else Role(role))
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        except LastAdministrator as error:
            raise click.ClickException(LAST.format(name)) from error
        when = "now" if stores.settings.password_sign_in else "once ALMANAC_PASSWORD_SIGN_IN=true"
    click.echo(f"{name} can sign in {when}" if created else f"{name} has another password now")


@admins.command("list")
@data_option
def list_administrators(data: Path | None) -> None:
    """List the people who can sign in, the oldest first."""
    with Stores(installed(data)) as stores, stores.database.reading() as session:
        by_openid = identities.administrator_ids(session)
        for each in administrators.every(session):
            factor = "" if each.sealed_totp_secret is None else ", second factor"
            factor = ", OpenID Connect" if each.id in by_openid else factor
            click.echo(f"{each.name}  {each.role}{factor}, since {each.created_at:%Y-%m-%dT%H:%M:%SZ}")


@admins.command("role")
@click.argument("name")
@click.argument("role", type=ROLES)
@data_option
def change_role(name: str, role: str, data: Path | None) -> None:
    """Give a person another role.

    The new role applies at once in all sessions of that person. A lower role withdraws their open links and
    invitations. The last administrator keeps the role.
    """
    with Stores(installed(data)) as stores, stores.database.writing() as session:
        found = _find(session, name)
        if identities.load(session, found.id) is not None:
            raise click.ClickException(f"{name} has the role that the identity provider states")
        changes = {"role": (found.role, role)}
        try:
            administrators.change_role(session, found.id, Role(role))
        except LastAdministrator as error:
            raise click.ClickException(LAST.format(name)) from error
        audit.record(session, actor=audit.COMMAND_LINE, action="changeRole", subject=name, changes=changes)
    click.echo(f"{name} has the role {role} now")


@admins.command("reset-second-factor")
@click.argument("name")
@data_option
def reset_second_factor(name: str, data: Path | None) -> None:
    """Remove the second factor of a person who has lost it.

    The password is enough until that person sets up another second factor. The recovery codes are deleted
    too. All browsers of that person are signed out, and their open links and invitations are withdrawn.
    """
    with Stores(installed(data)) as stores, stores.database.writing() as session:
        found = _find(session, name)
        if found.sealed_totp_secret is None:
            raise click.ClickException(f"{name} has no second factor")
        second_factors.remove(session, found.id)
        audit.record(session, actor=audit.COMMAND_LINE, action="resetSecondFactor", subject=name)
    click.echo(f"{name} signs in with the password alone now")


@admins.command("remove")
@click.argument("name")
@data_option
def remove_administrator(name: str, data: Path | None) -> None:
    """Remove a person.

    All browsers of that person are signed out, and their open links and invitations are withdrawn. The last
    administrator cannot be removed.
    """
    with Stores(installed(data)) as stores, stores.database.writing() as session:
        found = _find(session, name)
        try:
            administrators.remove(session, found.id)
        except LastAdministrator as error:
            raise click.ClickException(LAST.format(name)) from error
        audit.record(session, actor=audit.COMMAND_LINE, action="removeAdministrator", subject=name)
    click.echo(f"{name} is removed, and open links and invitations of that person are withdrawn")


def _find(session: Session, name: str) -> Administrator:
    found = administrators.find(session, name)
    if found is None:
        raise click.ClickException(f"There is no administrator {name}")
    return found
