"""The commands for the database: migrations, and the rotation of encryption keys."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.common import data_option, settings
from store.sql.database import MigrationState
from store.stores import Stores


@click.group()
def db() -> None:
    """Manage the database."""


@db.command()
@data_option
def upgrade(data: Path | None) -> None:
    """Run every migration that is missing."""
    with Stores(settings(data)) as stores:
        stores.database.upgrade()
        newer = stores.database.migration_state() is MigrationState.NEWER
    if newer:
        click.echo("A later version has migrated the database, so nothing is missing")
    else:
        click.echo("The database is up to date")


@db.command()
@data_option
def reseal(data: Path | None) -> None:
    """Seal everything again with the first encryption key.

    That is all tokens, secrets and stored answers that older keys of ALMANAC_ENCRYPTION_KEYS have sealed.
    The service may run meanwhile, with the same keys. The command may be interrupted; run again, it
    continues. The exit status is 1 while anything is left that needs another key.
    """
    from store.sql import key_rotation

    with Stores(settings(data)) as stores:
        last = ""
        for each in key_rotation.reencrypt(stores.database, stores.keyring):
            line = f"{each.column}: {each.reencrypted} re-sealed"
            if each.undecryptable:
                line += f", {each.undecryptable} that no key opens"
            if line != last:
                click.echo(line)
            last = line
        left = key_rotation.remaining(stores.database, stores.keyring)
    if left:
        remaining = ", ".join(f"{count} in {column}" for column, count in left.items())
        raise click.ClickException(
            f"Not sealed with the first key: {remaining}. Keep the other keys; "
            "restart what still runs with another first key, and run this again"
        )
    click.echo(
        "Everything is sealed with the first key. Once all that runs seals with it, and ten minutes later "
        "(consents under way), the others may go"
    )
