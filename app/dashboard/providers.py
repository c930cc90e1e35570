"""The OAuth client registered with each provider: its state, how to register it, and the form for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from flask.typing import ResponseReturnValue
from marshmallow import fields

from app.accounts import oauth_clients
from app.accounts.oauth_clients import CannotChange, Registration, RegistrationFieldRefused, Source
from app.dashboard import forms
from app.dashboard.blueprint import blp, done, failed, page, warned
from app.dashboard.sign_in import sessions
from app.http.hosts import base_url
from app.http.routes import route_facts
from providers import registry
from providers.oauth.registration_probe import Finding, ProbeVerdict
from store.security.crypto import Undecipherable
from store.sql.models import Role


class RegistrationForm(forms.Body):
    """The credentials of an OAuth client, as its provider shows them."""

    client_id = fields.String(required=True)
    client_secret = fields.String(required=True)
    tenant = fields.String(load_default=None)


@dataclass(frozen=True, slots=True)
class Card:
    """One provider on the page."""

    registration: Registration
    form: forms.Form
    steps: tuple[str, ...]
    variables: tuple[str, ...]
    badge: tuple[str, str]
    default_tenant: str | None
    checkable: bool

    @property
    def by_environment(self) -> bool:
        """Whether the environment sets the registration, so that the page cannot change it."""
        return self.registration.source is Source.ENVIRONMENT

    @property
    def checked_at(self) -> datetime | None:
        """When the provider last accepted or refused the registration."""
        checked = self.registration.checked
        return None if checked is None else datetime.fromtimestamp(checked.at, UTC)

    @property
    def saved(self) -> bool:
        """Whether the registration is stored in the database, so that the page can remove it."""
        return self.registration.source is Source.DATABASE


@blp.get("/settings")
def settings() -> ResponseReturnValue:
    """The registrations with all providers."""
    return _cards({})


@blp.post("/settings/<known_consent_provider:provider>")
@route_facts(role=Role.ADMINISTRATOR)
def save_registration(provider: str) -> ResponseReturnValue:
    """Check a registration with its provider, and save it unless the provider rejects it."""
    name = provider
    form = forms.read(RegistrationForm)
    try:
        finding = _check_and_save(name, form)
    except CannotChange as error:
        return failed(f"{error}.", "settings")
    if finding is None:
        return _cards({name: form}, 400)
    report = done if finding.verdict is ProbeVerdict.RIGHT else warned
    return report(f"Saved. {finding.sentence}. {finding.advice}", "settings")


@blp.post("/settings/<known_consent_provider:provider>/check")
@route_facts(role=Role.ADMINISTRATOR)
def check_registration(provider: str) -> ResponseReturnValue:
    """Ask the provider whether it accepts the registration in force."""
    name = provider
    title = registry.title(name)
    try:
        finding = oauth_clients.check(name, site=base_url())
    except Undecipherable:
        return failed(f"The saved secret of {title} cannot be decrypted. Enter it again.", "settings")
    if finding is None:
        return failed(f"{title} is not registered yet.", "settings")
    report = {ProbeVerdict.RIGHT: done, ProbeVerdict.UNKNOWN: warned, ProbeVerdict.WRONG: failed}[
        finding.verdict
    ]
    return report(f"{title}: {finding.sentence}. {finding.advice}", "settings")


@blp.post("/settings/<known_consent_provider:provider>/remove")
@route_facts(role=Role.ADMINISTRATOR)
def remove_registration(provider: str) -> ResponseReturnValue:
    """Remove a stored registration."""
    try:
        oauth_clients.remove(provider, actor=sessions.actor())
    except CannotChange as error:
        return failed(f"{error}.", "settings")
    return done("The registration is removed. Connected accounts work until they need it.", "settings")


def badge_of(registration: Registration) -> tuple[str, str]:
    """The badge of a provider's registration: CSS class and words."""
    checkable = registry.consent(registration.provider).proves_secret
    if registration.configured:
        if registration.checked is None:
            return "", "not checked yet" if checkable else "configured"
        return ("good", "accepted") if registration.checked.accepted else ("bad", "refused")
    return ("bad", "secret lost") if registration.source is Source.DATABASE else ("warn", "not configured")


def _check_and_save(provider: str, form: forms.Form) -> Finding | None:
    """The provider's verdict on a saved form; None, with an error in the form, if nothing was saved."""
    secret = form.values.pop("client_secret", "")
    if not form:
        return None
    try:
        finding = oauth_clients.check_and_save(
            provider,
            form.data["client_id"],
            secret,
            form.data["tenant"],
            site=base_url(),
            actor=sessions.actor(),
        )
    except RegistrationFieldRefused as error:
        form.refuse(error.field, error.complaint)
        return None
    if finding.verdict is ProbeVerdict.WRONG:
        form.refuse("", f"Nothing was saved. {finding.sentence}. {finding.advice}")
        return None
    return finding


def _cards(submitted: Mapping[str, forms.Form], status: int = 200) -> ResponseReturnValue:
    cards = [_card(each, submitted.get(each.provider)) for each in oauth_clients.overview(base_url())]
    return page("settings.html", status, cards=cards)


def _card(registration: Registration, submitted: forms.Form | None) -> Card:
    variables = oauth_clients.variables(registration.provider)
    return Card(
        registration=registration,
        form=_as_saved(registration) if submitted is None else submitted,
        steps=registry.consent(registration.provider).steps,
        variables=variables,
        badge=badge_of(registration),
        default_tenant=oauth_clients.default_tenant(registration.provider),
        checkable=registry.consent(registration.provider).proves_secret,
    )


def _as_saved(registration: Registration) -> forms.Form:
    """The form with the saved values except the secret.

    The default tenant of the settings is left out: saving the form must not store it.
    """
    values = {"client_id": registration.client_id or ""}
    if registration.tenant != oauth_clients.default_tenant(registration.provider):
        values["tenant"] = registration.tenant or ""
    return forms.blank(**values)
