"""The form of a provider on a page: on that of a user, and on that of an invitation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flask import request

from app.accounts import account_forms
from app.dashboard import forms
from app.http.errors import ApiError, overloaded
from app.schemas.connection_forms import form_body
from app.schemas.connections import MAX_LABEL
from app.schemas.error_codes import Code
from app.services import services
from providers import registry
from providers.base import Token
from providers.definition import Preset
from providers.errors import AuthorizationInvalid
from store.security.crypto import Undecipherable
from store.sql.models import OAuthConnection
from store.sql.queries.api_keys import Caller
from store.sql.queries.connection_rows import open_credentials
from workers.fanout.admission import Overloaded

# The names in the query of a preset, and of the connection whose account is connected again.
SERVICE, ACCOUNT = "service", "account"


def reconnected(rows: Iterable[OAuthConnection], provider: str) -> OAuthConnection | None:
    """The connection that the query names, if it is one with a form."""
    wanted = (
        each for each in rows if (each.provider, each.public_id) == (provider, request.args.get(ACCOUNT))
    )
    return next(wanted, None)


def blank(provider: str, row: OAuthConnection | None) -> forms.Form:
    """The form with what may be shown of the connected account, else with the values of the chosen preset."""
    stored = {} if row is None else {**shown(row), "label": row.label or ""}
    preset = _chosen(provider, stored)
    return forms.blank(**stored | dict(preset.values if preset else {}))


def context(provider: str, row: OAuthConnection | None) -> dict[str, Any]:
    """The values for a template besides the form."""
    return {
        "provider": provider,
        "title": registry.title(provider),
        "guide": registry.form(provider),
        "preset": _chosen(provider, {} if row is None else shown(row)),
        "reconnected": row,
        "longest_label": MAX_LABEL,
    }


def shown(row: OAuthConnection) -> Mapping[str, str]:
    """The values of a connected account's form, except secrets; {} if its provider has no form."""
    guide = registry.definition(row.provider).form
    try:
        tokens = open_credentials(row, services().stores.keyring).tokens
        return guide.shown(Token(tokens.access_token)) if guide and tokens else {}
    except (Undecipherable, AuthorizationInvalid):
        return {}


def facts(row: OAuthConnection) -> list[tuple[str, str]]:
    """The titles and the values of these fields."""
    guide, values = registry.definition(row.provider).form, shown(row)
    return [(each.title, values[each.name]) for each in guide.fields if each.name in values] if guide else []


def renewal(row: OAuthConnection) -> str:
    """The advice for an account that its server does not accept any more; "" if its provider has no form."""
    guide = registry.definition(row.provider).form
    if guide is None or not guide.renewal:
        return ""
    preset = _fitting(guide.presets, shown(row))
    return f"{guide.renewal}. {preset.help}." if preset and preset.help else f"{guide.renewal}."


def send(
    caller: Caller, custom_id: str, provider: str, account: str, *, invitation_id: str | None = None
) -> tuple[forms.Form, str]:
    """Connect the account behind the form of this request; also the sentence that says so.

    A form whose account cannot be connected is refused. ``account``: see ``account_forms.connect``.
    """
    form = forms.read(form_body(provider))
    if not form:
        return form, ""
    values = {each.name: form.data[each.name] for each in registry.form(provider).fields}
    try:
        row, again = account_forms.connect(
            caller,
            custom_id,
            provider,
            values,
            form.data["label"],
            account=account,
            invitation_id=invitation_id,
        )
    except Overloaded as error:
        _refuse(form, provider, overloaded(error))
        return form, ""
    except ApiError as error:
        _refuse(form, provider, error)
        return form, ""
    name = row.label or row.email
    connected = registry.title(provider) + (f" ({name})" if name else "")
    return form, f"{connected} is connected{' again' if again else ''}."


def _refuse(form: forms.Form, provider: str, error: ApiError) -> None:
    """Show an error beside the field that it is about, else above all fields."""
    fields = registry.form(provider).fields
    named = [each.name for each in fields if each.name == error.param]
    if named:
        form.refuse(named[0], error.error.removeprefix(f"{error.param} ").removesuffix("."))
        return
    secrets = [each.name for each in fields if each.kind == "password"]
    if secrets and error.code is Code.AUTHORIZATION_INVALID:
        form.refuse(secrets[0], "is not accepted with the values above")
        return
    form.refuse("", f"{error.error.removesuffix('.')}. Nothing is stored.")


def _chosen(provider: str, stored: Mapping[str, str]) -> Preset | None:
    """The preset that the query names; without one, that of the connected account."""
    presets, wanted = registry.form(provider).presets, request.args.get(SERVICE)
    if wanted is None:
        return _fitting(presets, stored)
    return next((each for each in presets if each.name == wanted), None)


def _fitting(presets: Iterable[Preset], stored: Mapping[str, str]) -> Preset | None:
    """The service of a connected account: the preset whose values the account has."""
    return next((each for each in presets if each.values and each.values.items() <= stored.items()), None)
