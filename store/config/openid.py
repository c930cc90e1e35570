"""Checks the settings of the sign-in by OpenID Connect."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from store.config.setting import SettingsError
from store.security.redirect_allowlist import is_this_machine

ROLES = ("viewer", "operator", "administrator")
_OPENID = "openid"


def issuer(url: str) -> str:
    """The issuer unchanged, as it is compared with that of the provider; or empty.

    :raise SettingsError: unless it is https, or http on this machine, without a query
    """
    if not url:
        return url
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        # The property parses the port, and raises if it is malformed.
        _ = parts.port
    except ValueError:
        host = ""
    known = host and (parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(host)))
    if not known or parts.query or parts.fragment or parts.username is not None:
        raise SettingsError(
            "ALMANAC_OIDC_ISSUER must be an https URL (http on this machine only) without a query, like "
            "https://login.example.com/realms/acme"
        )
    return url


def scopes(names: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes without white space around them.

    :raise SettingsError: unless ``openid`` is among them
    """
    stripped = tuple(name.strip() for name in names)
    if _OPENID not in stripped:
        raise SettingsError("ALMANAC_OIDC_SCOPES must contain openid")
    return stripped


def roles(entries: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Pairs of a value of the claim and its role.

    :raise SettingsError: naming an entry that is not of this form
    """
    pairs = []
    for entry in entries:
        value, _, role = (part.strip() for part in entry.rpartition("="))
        if not value or role.lower() not in ROLES:
            raise SettingsError(
                f"ALMANAC_OIDC_ROLES: {entry} must be a value of the claim, =, and one of {', '.join(ROLES)}"
            )
        pairs.append((value, role.lower()))
    return tuple(pairs)


def check(issuer: str, needed: Mapping[str, object], *, passwords: bool) -> None:
    """Check that the settings fit together.

    :raise SettingsError: naming the missing ones
    """
    missing = [name for name, value in needed.items() if not value]
    if issuer and missing:
        raise SettingsError(f"{' and '.join(missing)} must be set when ALMANAC_OIDC_ISSUER is")
    if not issuer and not passwords:
        raise SettingsError(
            "ALMANAC_PASSWORD_SIGN_IN=false needs ALMANAC_OIDC_ISSUER: nobody could sign in otherwise"
        )
