"""The commands for the database: migrations, copies, and the rotation of encryption keys."""

from __future__ import annotations

from pathlib import Path

import click
from redis.exceptions import RedisError

from app.cli.common import data_option, settings
from store.coordination.heartbeats import WORKER_SECONDS
from store.sql.database import MigrationState
from store.stores import Stores


@click.group()
def db() -> None:
    """Manage the database."""


@db.command()
@data_option
def upgrade(data: Path | None) -> None:
    """Run all missing migrations."""
    with Stores(settings(data)) as stores:
        stores.database.upgrade()
        newer = stores.database.migration_state() is MigrationState.NEWER
    if newer:
        click.echo("A later version has migrated the database, so no migration is missing")
    else:
        click.echo("The database is up to date")


@db.command()
@click.option(
    "--to",
    "url",
    required=True,
    metavar="URL",
    help="The empty database, as in ALMANAC_DATABASE_URL. PGPASSWORD may hold the password of PostgreSQL.",
)
@data_option
def copy(url: str, data: Path | None) -> None:
    """Copy all rows to another database, and compare them.

    The usual way is from SQLite to PostgreSQL. Stop the service first, and start it with the new
    ALMANAC_DATABASE_URL after this command has ended. It refuses to copy while a worker runs. If the
    command is interrupted, run it again to continue.
    Encrypted values are copied as they are: keep ALMANAC_SECRET_KEY and ALMANAC_ENCRYPTION_KEYS.
    """
    from store.sql import copying
    from store.sql.database import Database

    with Stores(settings(data)) as stores:
        _require_stopped(stores)
        target = Database(url)
        rows = 0
        try:
            for each in copying.copy(stores.database, target):
                if each.checked:
                    rows += each.done
                else:
                    click.echo(f"{each.table}: {each.done} of {each.total}")
        except copying.NotCopied as error:
            raise click.ClickException(str(error)) from error
        finally:
            target.close()
    click.echo(
        f"{rows} rows are copied and compared. Set ALMANAC_DATABASE_URL, keep "
        "ALMANAC_SECRET_KEY and ALMANAC_ENCRYPTION_KEYS, and start the service"
    )


def _require_stopped(stores: Stores) -> None:
    """Refuse to copy what workers may be changing.

    A Redis that does not answer has been stopped with the service.
    """
    try:
        running = sorted(stores.heartbeats.live_processes().workers)
    except RedisError:
        return
    if running:
        raise click.ClickException(
            f"The service runs ({', '.join(running)}), and rows that it writes now would be missing from the "
            "copy. Stop all its processes, and run this again. A worker that was killed counts as running "
            f"for {WORKER_SECONDS:.0f} seconds"
        )


@db.command()
@data_option
def reseal(data: Path | None) -> None:
    """Re-encrypt all stored secrets with the first encryption key.

    These are all tokens, secrets and stored answers that are encrypted with other keys of
    ALMANAC_ENCRYPTION_KEYS. The service can run at the same time, with the same keys. If the command is
    interrupted, run it again to continue. The exit status is 1 while a value is left that needs another key.
    """
    from store.sql import key_rotation

    with Stores(settings(data)) as stores:
        last = ""
        for each in key_rotation.reencrypt(stores.database, stores.keyring):
            line = f"{each.column}: {each.reencrypted} re-encrypted"
            if each.undecryptable:
                line += f", {each.undecryptable} that no key decrypts"
            if line != last:
                click.echo(line)
            last = line
        left = key_rotation.remaining(stores.database, stores.keyring)
    if left:
        remaining = ", ".join(f"{count} in {column}" for column, count in left.items())
        raise click.ClickException(
            f"Not encrypted with the first key: {remaining}. Keep the other keys; "
            "restart the processes that still have another first key, and run this again"
        )
    click.echo(
        "Everything is encrypted with the first key. Once all processes have it as their first key, and ten "
        "minutes later (consents in progress), the other keys can be removed"
    )
