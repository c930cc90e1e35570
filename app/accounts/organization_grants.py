"""Grants of organizations: checked by a worker at the provider, stored, and removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from sqlalchemy.orm import Session

from app.accounts import disconnect, organizations
from app.accounts.ownership import require_whole_service
from app.http.errors import ApiError, Invalid, NotFound
from app.http.provider_failures import request_failed
from app.schemas.error_codes import Code
from app.services import services
from providers import registry
from providers.google.service_accounts import InvalidKey, ServiceAccountKey
from providers.microsoft import MANY_TENANTS, certificates
from store.security.one_time_secrets import GrantTrial
from store.sql.queries import audit, organization_grants
from store.sql.queries.api_keys import Caller
from store.sql.queries.organization_grants import GrantSummary, NewGrant
from workers.jobs import CheckGrant, GrantCheck

KEY_FILE = "serviceAccountKey"
# The fields of the key file that are stored.
KEY_FIELDS = ("type", "client_email", "private_key", "private_key_id", "client_id")
# A key of 8192 bits has fewer characters.
MAX_KEY_FIELD = 8192
MAX_EMAIL = 320

# The field of a request for each part of a grant that a provider may refuse.
_FIELDS = {"subject": "subject", "client": "clientSecret"}

# Microsoft does not promise to name the permissions of a token: then the mailboxes themselves decide.
UNKNOWN_PERMISSIONS = ("Calendars.ReadWrite", "MailboxSettings.Read")
NO_CALENDARS = (
    "Microsoft accepts the application, but its permissions reach no calendar: add the application "
    "permission Calendars.ReadBasic.All, Calendars.Read or Calendars.ReadWrite, and grant admin consent"
)


def store_google(
    caller: Caller, slug: str, key_file: Mapping[str, Any], subject: str, scope: str | Sequence[str]
) -> GrantSummary:
    """Store a service account that the administrator of a Google domain has authorized.

    Do not call this within a transaction, because it waits for a worker.

    :raise ApiError: for an invalid key file, or when Google refuses the grant
    """
    key = _key(key_file)
    scopes = registry.scopes("google").expand_levels([scope] if isinstance(scope, str) else scope)
    if not registry.scopes("google").reaches_calendars(scopes):
        raise Invalid("scope must have a scope that reaches calendars", param="scope")
    stored = {name: key_file[name] for name in KEY_FIELDS if key_file.get(name) is not None}
    grant = NewGrant(
        provider="google",
        subject=subject,
        client_email=key.client_email,
        tenant=None,
        client_id=None,
        secret=orjson.dumps(stored).decode(),
        scope=scopes,
    )
    return _store(caller, slug, grant)


def store_microsoft(
    caller: Caller,
    slug: str,
    tenant: str,
    client_id: str | None,
    client_secret: str | None,
    certificate: str | None = None,
    thumbprint: str | None = None,
) -> GrantSummary:
    """Store an application that the administrator of a Microsoft tenant has given permissions.

    Without an application of its own, the installation's registration is used. A key that is bound to an
    organization may not do that: any tenant that has consented to the registration could be named.

    Do not call this within a transaction, because it waits for a worker.

    :raise ApiError: for invalid fields, or when Microsoft refuses the grant
    """
    if tenant.lower() in MANY_TENANTS:
        raise Invalid("tenant must be one tenant: its Directory (tenant) ID or a domain", param="tenant")
    if certificate is not None and client_secret is not None:
        raise Invalid("certificate must be absent beside a clientSecret", param="certificate")
    if thumbprint is not None and certificate is None:
        raise Invalid("certificate is required with a thumbprint", param="certificate")
    if certificate is not None:
        _check_certificate(certificate, thumbprint)
    secret = certificate or client_secret
    if (client_id is None) != (secret is None):
        absent = "clientId" if client_id is None else "clientSecret"
        together = "clientId and clientSecret, or a certificate, belong together"
        raise Invalid(f"{absent} is required: {together}", param=absent)
    if client_id is None:
        require_whole_service(caller, "A grant without clientId and clientSecret")
    grant = NewGrant(
        provider="microsoft",
        subject=None,
        client_email=None,
        tenant=tenant,
        client_id=client_id,
        secret=secret,
        scope=(),
    )
    return _store(caller, slug, grant)


def _check_certificate(pem: str, thumbprint: str | None) -> None:
    """Check a certificate with its private key; ``thumbprint`` is as Microsoft shows it.

    :raise Invalid: with the field at fault
    """
    try:
        certificate = certificates.load(pem)
    except certificates.InvalidCertificate as error:
        raise Invalid(f"certificate {error}", param="certificate") from None
    if certificate.expired:
        sentence = f"certificate has expired on {certificate.expires_at:%Y-%m-%d}: make a new one"
        raise Invalid(sentence, param="certificate")
    stated = None if thumbprint is None else thumbprint.replace(":", "").lower()
    if stated is not None and stated not in certificate.thumbprints:
        raise Invalid("thumbprint is not that of the certificate", param="thumbprint")


def listed(session: Session, caller: Caller, slug: str) -> list[GrantSummary]:
    """The grants of an organization, by provider.

    :raise NotFound: for an organization that the caller does not reach
    """
    return organization_grants.of_organization(session, organizations.number(session, caller, slug))


def find(session: Session, caller: Caller, slug: str, provider: str, *, keep: bool = False) -> GrantSummary:
    """The grant of an organization with one provider. ``keep`` locks it against deletion until the commit.

    :raise NotFound: when there is none
    """
    number = organizations.number(session, caller, slug, keep=keep)
    found = organization_grants.of_organization(session, number, provider, keep=keep)
    if not found:
        raise _no_grant(slug, provider)
    return found[0]


def remove(caller: Caller, slug: str, provider: str) -> None:
    """Delete a grant with its delegated connections. Nothing is revoked at the provider.

    Do not call this within a transaction, because it waits for a worker.

    :raise NotFound: when there is none
    """
    database = services().stores.database
    with database.reading() as session:
        grant = find(session, caller, slug, provider)
    disconnect.stop_channels_of_grant(grant.id)
    with database.writing() as session:
        number = organizations.number(session, caller, slug)
        removed = organization_grants.remove(session, number, provider)
        if removed is None:
            raise _no_grant(slug, provider)
        audit.record(session, actor=caller.visible, action="deleteGrant", subject=f"{slug}/{provider}")
    disconnect.forget_grant_tokens([grant.id])
    disconnect.forget_cached(removed)


def _store(caller: Caller, slug: str, grant: NewGrant) -> GrantSummary:
    stores = services().stores
    with stores.database.reading() as session:
        organizations.number(session, caller, slug)
    checked = _check(grant)
    scope = list(grant.scope) or list(checked.scope or UNKNOWN_PERMISSIONS)
    if grant.provider == "microsoft" and (
        checked.scope == () or not registry.scopes("microsoft").reaches_calendars(scope)
    ):
        raise ApiError(NO_CALENDARS, Code.GRANT_REFUSED)
    with stores.database.writing() as session:
        number = organizations.number(session, caller, slug, keep=True)
        _require_domain_of_members(session, number, grant)
        old = next(iter(organization_grants.of_organization(session, number, grant.provider)), None)
        before = {} if old is None else _visible_state(old)
        saved = organization_grants.save(session, stores.keyring, number, replace(grant, scope=scope))
        audit.record(
            session,
            actor=caller.visible,
            action="storeGrant",
            subject=f"{slug}/{grant.provider}",
            changes={name: (before.get(name), value) for name, value in _visible_state(saved).items()},
        )
    # The cached tokens belong to the grant that was replaced.
    stores.grant_tokens.forget(saved.id)
    return saved


def _visible_state(grant: GrantSummary) -> dict[str, object]:
    """The values of a grant that the audit log shows."""
    return {
        "subject": grant.subject,
        "clientEmail": grant.client_email,
        "tenant": grant.tenant,
        "clientId": grant.client_id,
        "scope": list(grant.scope),
    }


def domain_of(address: str) -> str:
    """The domain of an address, in lower case."""
    return address.rpartition("@")[2].lower()


def _require_domain_of_members(session: Session, organization: int, grant: NewGrant) -> None:
    """Reject a subject in another domain than the members whom the replaced grant reads.

    :raise Invalid: because the new grant could read none of them, or only those who share with its subject
    """
    older = organization_grants.of_organization(session, organization, grant.provider)
    if not older or older[0].subject is None or grant.subject is None:
        return
    theirs = domain_of(older[0].subject)
    members = organization_grants.delegated(session, organization).get(older[0].id)
    if members and domain_of(grant.subject) != theirs:
        raise Invalid(
            f"subject must be in {theirs}, the domain of the grant's members: delete the grant first",
            param="subject",
        )


def _check(grant: NewGrant) -> GrantCheck:
    """Have a worker request a token by the grant.

    :raise ApiError: when the provider refuses it, or does not answer
    """
    trial = GrantTrial(
        grant.provider, grant.subject, grant.tenant, grant.client_id, grant.secret, tuple(grant.scope)
    )
    reply = services().ask(CheckGrant(services().stores.grant_trials.put(trial)))
    checked = reply.checked
    if reply.failed is not None:
        raise request_failed(reply.failed)
    if checked is None:
        raise RuntimeError("a grant was not checked")
    if checked.refused is not None:
        own_client = grant.client_id is not None
        field = _FIELDS.get(checked.refused) if checked.refused != "client" or own_client else None
        if field == "clientSecret" and certificates.is_certificate(grant.secret or ""):
            field = "certificate"
        raise ApiError(checked.message, Code.GRANT_REFUSED, param=field)
    return checked


def _key(key_file: Mapping[str, Any]) -> ServiceAccountKey:
    """The key in a key file.

    :raise Invalid: with the field at fault
    """
    for name in KEY_FIELDS:
        value = key_file.get(name)
        if isinstance(value, str) and len(value) > MAX_KEY_FIELD:
            raise _bad_key(name, f"must have at most {MAX_KEY_FIELD} characters")
        if value is not None and not isinstance(value, str):
            raise _bad_key(name, "must be a string")
    try:
        key = ServiceAccountKey.parse(key_file)
    except InvalidKey as error:
        sentence = error.sentence.removeprefix(error.field or "").strip()
        raise _bad_key(error.field, sentence) from error
    if len(key.client_email) > MAX_EMAIL:
        raise _bad_key("client_email", f"must have at most {MAX_EMAIL} characters")
    return key


def _bad_key(field: str | None, sentence: str) -> Invalid:
    param = KEY_FILE if field is None else f"{KEY_FILE}.{field}"
    return Invalid(f"{param} {sentence}", param=param)


def _no_grant(slug: str, provider: str) -> NotFound:
    sentence = f"There is no grant of {registry.title(provider)} for {slug}"
    return NotFound(sentence, Code.GRANT_NOT_FOUND)
