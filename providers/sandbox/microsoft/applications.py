"""Applications with permissions of their own: client credentials, and the mailboxes that they may read.

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
"""

from __future__ import annotations

import secrets
import time
from typing import Any

from providers.sandbox.accounts import Access, Account, Domain, Grant
from providers.sandbox.consent import client_of, id_token
from providers.sandbox.exchange import Answer, Request
from providers.sandbox.microsoft.entra import HEADERS, oauth_error
from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.microsoft.mailbox import object_id
from providers.sandbox.microsoft.scopes import PREFIX
from providers.sandbox.world import LIFETIME, World

# The permissions that are granted by default.
ROLES = ("Calendars.ReadWrite", "MailboxSettings.Read")
DEFAULT = ".default"
# Not the name of one tenant.
MANY_TENANTS = frozenset({"common", "organizations", "consumers"})

ME = "/me request is only valid with delegated authentication flow."
# https://learn.microsoft.com/graph/auth-limit-mailbox-access
EXCLUDED = "Access to OData is disabled: [RAOP] : Blocked by tenant configured AppOnly AccessPolicy settings."


def token(world: World, request: Request) -> Answer:
    """An access token of one hour that holds the application's permissions as ``roles``."""
    tenant = request.path[1].lower()
    tenants = [each for each in world.domains.values() if each.provider == "microsoft"]
    domain = next((each for each in tenants if tenant in (each.tenant, each.name)), None)
    if domain is None:
        # Without any domain, every tenant exists, and its applications have no permissions.
        return oauth_error(90002) if tenants and tenant not in MANY_TENANTS else issued(powerless())
    client_id, secret = client_of(request)
    if domain.withdrawn or client_id != domain.client_id:
        return oauth_error(700016)
    # An assertion was checked before.
    if secret != domain.secret and "client_assertion" not in request.form:
        return oauth_error(7000215)
    if domain.secret_expired:
        return oauth_error(7000222)
    if not request.form.get("scope", "").endswith("/" + DEFAULT):
        return oauth_error(1002012)
    text = id_token(claims(domain), LIFETIME)
    grant = Grant(domain.application, domain.scopes, domain.client_id, domain=domain)
    return issued(world.register(text, Access(grant, domain.scopes, time.time() + LIFETIME)))


def issued(text: str) -> Answer:
    document = {
        "token_type": "Bearer",
        "expires_in": LIFETIME - 1,
        "ext_expires_in": LIFETIME - 1,
        "access_token": text,
    }
    return Answer(200, document=document, headers=dict(HEADERS))


def powerless() -> str:
    """A token that allows nothing."""
    return f"eyJ0eXAi{secrets.token_urlsafe(24)}"


def claims(domain: Domain) -> dict[str, Any]:
    return {
        "aud": PREFIX.rstrip("/"),
        "iss": f"https://sts.windows.net/{domain.tenant}/",
        "app_displayname": "Almanac",
        "appid": domain.client_id,
        "idtyp": "app",
        "oid": object_id(domain.application),
        "roles": list(domain.scopes),
        "tid": domain.tenant,
        "uti": secrets.token_urlsafe(16),
        "ver": "1.0",
    }


def user_named(world: World, domain: Domain, name: str) -> Account | None:
    """The member with an address or a directory id."""
    if "@" in name:
        account = world.account("microsoft", name)
        return account if account is not None and domain.has(account) else None
    return next((each for each in world.members(domain) if object_id(each) == name.lower()), None)


def for_user(world: World, access: Access, name: str) -> Access:
    """The token as it applies to the mailbox of ``users/{name}``.

    :raise Refused: when there is no such mailbox, or the token does not open it
    """
    domain = access.grant.domain
    if domain is None:
        account = access.grant.account
        if name.lower() not in (account.email.lower(), object_id(account)):
            raise refusal("ErrorAccessDenied")
        return access
    member = user_named(world, domain, name)
    if member is None:
        raise refusal("ErrorInvalidUser", f"The requested user '{name}' is invalid.")
    if member.suspended:
        raise refusal("MailboxNotEnabledForRESTAPI")
    if member.excluded:
        raise refusal("ErrorAccessDenied", EXCLUDED)
    grant = Grant(member, access.scopes, domain.client_id, domain=domain)
    return Access(grant, access.scopes, access.expires_at)


def reads(domain: Domain, account: Account) -> bool:
    """Whether the application may read a mailbox that a body names."""
    return domain.has(account) and not account.suspended and not account.excluded
