"""The forms for a grant of each provider. Secrets leave the form as soon as it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from flask import request
from marshmallow import fields, pre_load

from app.accounts.organization_grants import KEY_FILE
from app.dashboard import forms
from app.dashboard.connection_badge import LEVELS
from app.http.errors import ApiError
from app.schemas.connections import Address
from app.schemas.error_codes import Code
from app.schemas.fields import Word
from app.schemas.organization_grants import MicrosoftGrantBody
from providers import registry
from providers.scopes import Level
from store.sql.queries.organization_grants import GrantSummary

# The names of fields, at the start of their errors.
LABELS = {
    "key": "Key file",
    "subject": "Subject",
    "scope": "Access",
    "tenant": "Tenant",
    "clientId": "Client ID",
    "clientSecret": "Client secret",
    "certificate": "Certificate",
    "thumbprint": "Thumbprint",
}
# The field that a provider's refusal is shown beside when it concerns none of the others.
REFUSED_BESIDE = {"google": "key", "microsoft": "tenant"}

NO_JSON = "is no JSON: paste or choose the whole file, as Google offers it for download"
TOGETHER = "is required: enter the client ID together with its secret or its certificate, or none of them"
ONE_OF_TWO = "must be absent beside a client secret: enter one of them"
NOT_REGISTERED = "is required: this installation has no registration with Microsoft of its own"
TRY_AGAIN = "Try again in a moment"


class _Trimmed(forms.Body):
    @pre_load
    def _trim(self, data: Mapping[str, str], **_: Any) -> dict[str, str]:
        """Remove surrounding spaces, which often come with copied text."""
        return {name: value.strip() for name, value in data.items()}


class GoogleForm(_Trimmed):
    """The account to read as, and the access that the administrator has authorized."""

    subject = Address(required=True)
    scope = Word(tuple(LEVELS), required=True)
    key = fields.String(load_default=None)


class MicrosoftForm(_Trimmed, MicrosoftGrantBody):
    """A tenant, and its application unless that is the installation's."""


def read_google() -> forms.Form:
    """The form for a grant of Google; ``data["key"]`` is the parsed key file."""
    form = forms.read(GoogleForm)
    pasted = form.values.pop("key", "")
    content = _uploaded("keyFile")
    form.data["key"] = _key(form, pasted.encode() if content is None else content)
    _name_fields(form)
    return form


def read_microsoft(*, registered: bool) -> forms.Form:
    """The form for a grant of Microsoft; ``registered`` is whether the installation has a registration."""
    content = _uploaded("certificateFile")
    form = forms.read(
        MicrosoftForm, {} if content is None else {"certificate": content.decode("utf-8-sig", "replace")}
    )
    proofs = [form.values.pop(name, None) is not None for name in ("clientSecret", "certificate")]
    if all(proofs):
        form.refuse("certificate", ONE_OF_TWO)
    elif ("clientId" in form.values) != any(proofs):
        form.refuse("clientId" if any(proofs) else "clientSecret", TOGETHER)
    elif not any(proofs) and not registered:
        form.refuse("clientId", NOT_REGISTERED)
    _name_fields(form)
    return form


def stored(provider: str, grant: GrantSummary | None) -> forms.Form:
    """The form with what is stored, without secrets."""
    if grant is None:
        return forms.blank(scope=Level.WRITE)
    values = {"subject": grant.subject, "tenant": grant.tenant, "clientId": grant.client_id}
    level = next(
        (each for each in LEVELS if set(registry.scopes(provider).expand_levels([each])) == set(grant.scope)),
        None,
    )
    return forms.blank(
        scope=level or Level.WRITE, **{name: value for name, value in values.items() if value is not None}
    )


def refuse(form: forms.Form, provider: str, error: ApiError) -> None:
    """Show the answer of the API's function in the form: beside the field that it concerns, or above."""
    title = registry.title(provider)
    if error.code is Code.GRANT_REFUSED:
        form.refuse(error.param or REFUSED_BESIDE[provider], error.error)
        form.refuse("", f"Nothing was stored: {title} refuses the grant.")
    elif error.code is Code.VALIDATION_FAILED and error.param is not None:
        name, _, rest = error.param.partition(".")
        field = "key" if name == KEY_FILE else name
        sentence = error.error.removeprefix(f"{name}.").removeprefix(name).strip()
        form.refuse(field, f"{LABELS[field]}{':' if rest else ''} {sentence}")
    else:
        form.refuse("", f"Nothing was stored. {error.error}. {TRY_AGAIN}.")


def _uploaded(name: str) -> bytes | None:
    """The content of the file in this field; None if none was chosen."""
    upload = request.files.get(name)
    return upload.read() if upload is not None and upload.filename else None


def _key(form: forms.Form, content: bytes) -> dict[str, Any] | None:
    """The key file as an object; None, with an error in the form, if it is none."""
    if not content.strip():
        form.refuse("key", "is required, also when another field is changed")
        return None
    try:
        key = orjson.loads(content.decode("utf-8-sig"))
    except ValueError:
        key = None
    if not isinstance(key, dict):
        form.refuse("key", NO_JSON)
        return None
    return key


def _name_fields(form: forms.Form) -> None:
    """Begin each error with the name of its field."""
    form.errors = {name: f"{LABELS.get(name, '')} {error}".strip() for name, error in form.errors.items()}
