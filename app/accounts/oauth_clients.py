"""OAuth client registrations with the providers: their state, and changing those kept in the database."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.accounts import oauth_flow
from app.services import services
from providers import registry
from providers.oauth import registration_probe
from providers.oauth.registration_probe import Finding, ProbeVerdict
from store.coordination.registration_checks import RegistrationCheck
from store.security.one_time_secrets import RegistrationTrial
from store.sql.queries import audit, provider_clients
from store.sql.queries.provider_clients import SealedClient, StoredClient
from workers.jobs import CheckRegistration

# Names of the fields of a registration in the providers' consoles.
FIELDS = {"client_id": "Client ID", "client_secret": "Client secret", "tenant": "Tenant"}

MAX_ID = 512
MAX_SECRET = 1024
MAX_TENANT = 253

_VISIBLE = re.compile(r"[!-~]+")
# It becomes a part of Microsoft's addresses: a GUID, a domain, or a word like common.
_TENANT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")

# A registration probe needs a redirect URI, even if the public URL of this service is unknown.
_PLACEHOLDER_SITE = "http://localhost"


class Source(StrEnum):
    """Where a registration comes from."""

    ENVIRONMENT = "environment"
    DATABASE = "database"
    NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration with one provider, and the values to enter at its ``console``.

    If ``source`` is the database and ``configured`` is false, no encryption key decrypts its secret any more.
    ``redirect_url`` is None if the public URL of this service is unknown. ``push_address`` is None if the
    provider sends no notifications. ``tenant`` is Microsoft's, and None for Google. ``checked`` is what the
    provider last said about this client; None if nothing is known.
    """

    provider: str
    title: str
    configured: bool
    source: Source
    client_id: str | None
    tenant: str | None
    updated_at: datetime | None
    redirect_url: str | None
    push_address: str | None
    console: str
    scopes: tuple[str, ...]
    checked: RegistrationCheck | None


class CannotChange(Exception):
    """The environment sets the registration, or none is saved. The message is for administrators."""


class RegistrationFieldRefused(Exception):
    """A field of a registration is invalid; ``field`` is its name in ``check_and_save``.

    The field's name and ``complaint`` together form the error sentence.
    """

    def __init__(self, field: str, complaint: str) -> None:
        super().__init__(f"{FIELDS[field]} {complaint}")
        self.field = field
        self.complaint = complaint


def overview(site: str | None) -> list[Registration]:
    """The registration with each provider that needs one.

    ``site`` is the base URL of this service, if it is known.
    """
    with services().stores.database.reading() as session:
        rows = provider_clients.load(session)
    known = {name: oauth_flow.current_provider(name) for name in registry.with_consent()}
    clients = {
        name: each.oauth.client_id
        for name, each in known.items()
        if each.oauth is not None and each.configured
    }
    checks = services().stores.registration_checks.read(clients)
    return [
        _registration(provider, rows.get(provider), site, checks.get(provider))
        for provider in registry.with_consent()
    ]


def check_and_save(
    provider: str,
    client_id: str,
    client_secret: str,
    tenant: str | None = None,
    *,
    site: str | None,
    actor: str,
) -> Finding:
    """Probe a registration at its provider, and save it unless the provider rejects it.

    The next request uses it, and every worker within a second. If ``tenant`` is None or empty, the setting
    applies. ``site`` is the base URL of this service, if it is known; ``actor`` is named in the audit log.

    :raise FieldRefused: for an invalid client id, secret or tenant
    :raise CannotChange: if the environment sets the registration
    """
    if services().registrations.set_by_environment(provider):
        raise CannotChange(_environment_counts(provider))
    client = _client(provider, client_id, client_secret, tenant)
    finding = _check(provider, client, site)
    if finding.verdict is not ProbeVerdict.WRONG:
        stores = services().stores
        with stores.database.writing() as session:
            old = provider_clients.load(session).get(provider)
            changes = {
                "clientId": (old.client_id if old else None, client.client_id),
                "tenant": (old.tenant if old else None, client.tenant),
                "secret": (None, "replaced" if old else "set"),
            }
            provider_clients.save(session, stores.keyring, provider, client)
            audit.record(session, actor=actor, action="saveRegistration", subject=provider, changes=changes)
        stores.registration_checks.forget(provider)
        _note(provider, client.client_id, finding)
    return finding


def default_tenant(provider: str) -> str | None:
    """The tenant of the settings, for a provider whose registrations belong to one."""
    return services().settings.providers.of(provider).get("tenant")


def variables(provider: str) -> tuple[str, str]:
    """The two settings that override a saved registration if both are set."""
    return f"ALMANAC_{provider.upper()}_CLIENT_ID", f"ALMANAC_{provider.upper()}_CLIENT_SECRET"


def check(provider: str, *, site: str | None) -> Finding | None:
    """Probe the registration in force at its provider; None if there is none.

    :raise Undecipherable: if no encryption key decrypts it
    """
    client = _in_force(provider)
    if client is None:
        return None
    finding = _check(provider, client, site)
    _note(provider, client.client_id, finding)
    return finding


def remove(provider: str, *, actor: str) -> None:
    """Delete a saved registration. Connections stay until their access tokens expire.

    :raise CannotChange: if none is saved; a registration from the environment cannot be removed
    """
    with services().stores.database.writing() as session:
        if not provider_clients.remove(session, provider):
            raise CannotChange(f"No registration with {registry.title(provider)} is saved")
        audit.record(session, actor=actor, action="removeRegistration", subject=provider)
    services().stores.registration_checks.forget(provider)


def _note(provider: str, client_id: str, finding: Finding) -> None:
    """Keep a finding for the pages; one that is neither right nor wrong leaves what was known."""
    if finding.verdict is not ProbeVerdict.UNKNOWN:
        services().stores.registration_checks.note(
            provider,
            client_id,
            accepted=finding.verdict is ProbeVerdict.RIGHT,
            sentence=finding.sentence,
            advice=finding.advice,
        )


def _registration(
    provider: str, row: SealedClient | None, site: str | None, checked: RegistrationCheck | None
) -> Registration:
    settings, known = services().settings, oauth_flow.current_provider(provider)
    source, client_id, updated_at = Source.NOWHERE, None, None
    if services().registrations.set_by_environment(provider):
        source, row = Source.ENVIRONMENT, None
        client_id = settings.providers.of(provider)["client_id"]
    elif row is not None:
        source, client_id, updated_at = Source.DATABASE, row.client_id, row.updated_at
    tenant = None
    if registry.consent(provider).has_tenant:
        tenant = (row.tenant if row else None) or default_tenant(provider)
    return Registration(
        provider=provider,
        title=registry.title(provider),
        configured=known.configured,
        source=source,
        client_id=client_id,
        tenant=tenant,
        updated_at=updated_at,
        redirect_url=oauth_flow.callback(provider, site),
        push_address=settings.push_address(provider),
        console=registry.consent(provider).console,
        scopes=registry.scopes(provider).every_scope(),
        checked=checked if known.configured else None,
    )


def _client(provider: str, client_id: str, client_secret: str, tenant: str | None) -> StoredClient:
    """The registration that was entered, without surrounding white space."""
    tenant = (tenant or "").strip() or None
    if tenant is not None and not registry.consent(provider).has_tenant:
        raise RegistrationFieldRefused("tenant", f"must be empty: {registry.title(provider)} has none")
    if tenant is not None and not (len(tenant) <= MAX_TENANT and _TENANT.fullmatch(tenant)):
        raise RegistrationFieldRefused("tenant", "must be the Directory (tenant) ID, a domain, or common")
    return StoredClient(
        _visible("client_id", client_id, MAX_ID),
        _visible("client_secret", client_secret, MAX_SECRET),
        tenant,
    )


def _visible(field: str, text: str, longest: int) -> str:
    text = text.strip()
    if not 1 <= len(text) <= longest:
        raise RegistrationFieldRefused(field, f"must have 1 to {longest} characters")
    if not _VISIBLE.fullmatch(text):
        raise RegistrationFieldRefused(field, "must be printable ASCII without spaces")
    return text


def _in_force(provider: str) -> StoredClient | None:
    stores = services().stores
    if services().registrations.set_by_environment(provider):
        own = services().settings.providers.of(provider)
        secret = own.get("client_certificate") or own["client_secret"]
        return StoredClient(own["client_id"], secret, own.get("tenant"))
    with stores.database.reading() as session:
        row = provider_clients.load(session).get(provider)
    return None if row is None else provider_clients.open_client(row, stores.keyring)


def _check(provider: str, client: StoredClient, site: str | None) -> Finding:
    """The result of a worker's probe of a registration at its provider."""
    redirect_uri = oauth_flow.callback(provider, site) or _PLACEHOLDER_SITE
    trial = RegistrationTrial(provider, client.client_id, client.secret, client.tenant, redirect_uri)
    reply = services().ask(CheckRegistration(services().stores.registration_trials.put(trial)))
    return reply.finding or registration_probe.unreachable(registry.title(provider))


def _environment_counts(provider: str) -> str:
    return (
        f"{registry.title(provider)} is set by the environment: change "
        f"{' and '.join(variables(provider))} there, or remove them"
    )
