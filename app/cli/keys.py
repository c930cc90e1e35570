"""The commands for API keys and for new secrets."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import click

from app.accounts import api_keys as accounts
from app.cli.common import data_option, installed
from store.config.settings import new_secrets
from store.sql.models import ApiKey, now
from store.sql.queries import api_keys, audit, organizations
from store.sql.queries.api_keys import MAX_RATE_LIMIT
from store.stores import Stores


@click.group()
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
@click.option("--read-only", is_flag=True, help="The key can only read.")
@click.option("--show-tokens", is_flag=True, help="The key can show access and refresh tokens.")
@click.option(
    "--manage-keys",
    is_flag=True,
    help="The key can create, change and revoke keys that may do no more than itself.",
)
@click.option(
    "--rate-limit",
    type=click.IntRange(1, MAX_RATE_LIMIT),
    metavar="N",
    help="The key can send N requests a minute (ALMANAC_RATE_LIMIT).",
)
@click.option(
    "--expires",
    metavar="WHEN",
    callback=_future,
    help="The key is refused from this time on: an ISO 8601 date or date-time, in UTC without an offset.",
)
@data_option
def create_key(
    name: str,
    organization: str | None,
    read_only: bool,
    show_tokens: bool,
    manage_keys: bool,
    rate_limit: int | None,
    expires: datetime | None,
    data: Path | None,
) -> None:
    """Create a key and print it.

    Only the key is written to standard output; it cannot be shown again. NAME is for your own records.
    """
    with Stores(installed(data)) as stores, stores.database.writing() as session:
        organization_id = None
        if organization is not None:
            organization_id = organizations.ids(session, [organization], organization_id=None).get(
                organization
            )
            if organization_id is None:
                raise click.ClickException(f"There is no organization {organization}")
        _, key = accounts.create(
            session,
            actor=audit.COMMAND_LINE,
            prefix=stores.settings.api_key_prefix,
            name=name,
            organization_id=organization_id,
            slug=organization,
            read_only=read_only,
            shows_tokens=show_tokens,
            manages_keys=manage_keys,
            expires_at=expires,
            rate_limit=rate_limit,
        )
    click.echo(key)


@keys.command("list")
@data_option
def list_keys(data: Path | None) -> None:
    """List the keys, each by its visible part.

    Each line also has the name, the organization, the rights, whether the key is in force, and its last use.
    """
    with Stores(installed(data)) as stores, stores.database.reading() as session:
        for key in api_keys.every(session):
            reach = key.organization.slug if key.organization else "everything"
            rights = "read-only" if key.read_only else "full"
            if key.shows_tokens:
                rights += ", shows tokens"
            if key.manages_keys:
                rights += ", manages keys"
            if key.rate_limit is not None:
                rights += f", {key.rate_limit} requests a minute"
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
    with Stores(installed(data)) as stores, stores.database.writing() as session:
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
    help="Write the files that docker-compose.yml uses instead; existing files stay.",
)
def print_secrets(to: Path | None) -> None:
    """Print new secrets for the settings.

    Prints ALMANAC_SECRET_KEY and ALMANAC_ENCRYPTION_KEYS as lines of an environment file.
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
