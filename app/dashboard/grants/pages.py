"""Entering, replacing and removing an organization's grant."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from app.accounts import oauth_flow, organization_grants
from app.dashboard import connection_badge
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.connection_badge import LEVELS
from app.dashboard.forms import Form
from app.dashboard.grants import forms
from app.dashboard.organizations import get_organization
from app.http.authentication import caller
from app.http.errors import ApiError, NotFound
from app.http.routes import route_facts
from app.schemas.error_codes import Code
from app.services import services
from providers import registry
from store.sql.models import Role
from store.sql.queries import organization_grants as queries
from store.sql.queries.organization_grants import GrantSummary


@blp.get("/organizations/<slug>/grants/<known_grant_provider:provider>")
@route_facts(role=Role.OPERATOR)
def grant(slug: str, provider: str) -> ResponseReturnValue:
    """The form to enter a grant, or to replace the one that is stored."""
    return _form(slug, provider)


@blp.post("/organizations/<slug>/grants/<known_grant_provider:provider>")
@route_facts(role=Role.OPERATOR)
def store_grant(slug: str, provider: str) -> ResponseReturnValue:
    """Check a grant with its provider, and store it unless the provider refuses it."""
    name = provider
    with services().stores.database.reading() as session:
        get_organization(session, slug)
    form = forms.read_google() if name == "google" else forms.read_microsoft(registered=_registered())
    status = 400
    if form:
        try:
            stored = _store(slug, name, form)
        except NotFound:
            raise
        except ApiError as error:
            forms.refuse(form, name, error)
            status = error.status
        else:
            title, access = registry.title(provider), connection_badge.access_of(name, stored.scope)
            sentence = (
                f"{title} accepts the grant, and it is stored. Access: {access}. Import its members next."
            )
            return done(sentence, "organization", slug=slug)
    return _form(slug, name, form, status)


@blp.post("/organizations/<slug>/grants/<known_grant_provider:provider>/remove")
@route_facts(role=Role.OPERATOR)
def remove_grant(slug: str, provider: str) -> ResponseReturnValue:
    """Delete a grant with its delegated connections."""
    with services().stores.database.reading() as session:
        get_organization(session, slug)
    title = registry.title(provider)
    try:
        organization_grants.remove(caller(), slug, provider)
    except NotFound as error:
        if error.code is not Code.GRANT_NOT_FOUND:
            raise
        return failed(f"The grant of {title} was already removed.", "organization", slug=slug)
    return done(
        f"The grant of {title} is removed, with its delegated connections. Its authorization at {title} is "
        "still there: remove it in the console.",
        "organization",
        slug=slug,
    )


def _registered() -> bool:
    """Whether the installation has a registration with Microsoft, which a tenant may consent to."""
    return oauth_flow.current_provider("microsoft").configured


def _store(slug: str, provider: str, form: Form) -> GrantSummary:
    sent = form.data
    if provider == "google":
        key, subject, scope = sent["key"], sent["subject"], sent["scope"]
        return organization_grants.store_google(caller(), slug, key, subject, scope)
    return organization_grants.store_microsoft(
        caller(),
        slug,
        sent["tenant"],
        sent["clientId"],
        sent["clientSecret"],
        sent["certificate"],
        sent["thumbprint"],
    )


def _form(slug: str, provider: str, sent: Form | None = None, status: int = 200) -> ResponseReturnValue:
    with services().stores.database.reading() as session:
        found = get_organization(session, slug)
        stored = next(iter(queries.of_organization(session, found.id, provider)), None)
    scopes = registry.scopes(provider)
    return page(
        "grant.html",
        status,
        organization=found,
        provider=provider,
        title=registry.title(provider),
        stored=stored,
        form=forms.stored(provider, stored) if sent is None else sent,
        steps=registry.grant(provider).steps,
        levels={each: (words, scopes.expand_levels([each])) for each, words in LEVELS.items()},
        registered=_registered(),
    )
