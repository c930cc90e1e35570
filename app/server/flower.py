"""Flower, which shows workers and tasks: its credentials and its environment."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from store.config.settings import FlowerSettings, Settings, SettingsError
from store.security.redirect_allowlist import is_this_machine

# Flower reads its credentials from this variable: an argument would be visible in the process list.
VARIABLE = "FLOWER_BASIC_AUTH"

# Removed from Flower's environment, as are the providers' client secrets: it needs none of them.
_SECRETS = ("ALMANAC_SECRET_KEY", "ALMANAC_ENCRYPTION_KEYS", "ALMANAC_DATABASE_URL", "ALMANAC_METRICS_TOKEN")


@dataclass(frozen=True, slots=True)
class FlowerSignIn:
    """The sign-in that Flower requires; ``generated`` is whether the password was generated just now."""

    user: str
    password: str = field(repr=False)
    generated: bool


def sign_in(settings: Settings | FlowerSettings, host: str) -> FlowerSignIn:
    """The sign-in of the settings. On loopback, a missing password is generated.

    :raise SettingsError: when a password is missing for other hosts, or Flower cannot take it
    """
    if not settings.flower_password:
        if not is_this_machine(host):
            raise SettingsError(
                f"ALMANAC_FLOWER_PASSWORD must be set for Flower to listen on {host}, because Flower shows "
                "the tasks of the workers. Without a password, Flower listens only on 127.0.0.1"
            )
        return FlowerSignIn(settings.flower_user, secrets.token_urlsafe(16), generated=True)
    _require_takeable("ALMANAC_FLOWER_USER", settings.flower_user, ":,")
    # A comma would separate several users.
    _require_takeable("ALMANAC_FLOWER_PASSWORD", settings.flower_password, ",")
    return FlowerSignIn(settings.flower_user, settings.flower_password, generated=False)


def environment(of: Mapping[str, str], sign_in: FlowerSignIn) -> dict[str, str]:
    """The environment for Flower's process: ``of`` without Flower's variables and Almanac's secrets."""
    kept = {name: value for name, value in of.items() if not name.startswith("FLOWER_") and not _secret(name)}
    return {**kept, VARIABLE: f"{sign_in.user}:{sign_in.password}"}


def address_and_sign_in(sign_in: FlowerSignIn, host: str, port: int, prefix: str = "") -> str:
    """The address of Flower and, when it was generated, the password."""
    where = f"http://{f'[{host}]' if ':' in host else host}:{port}/{prefix.strip('/')}".rstrip("/")
    if not sign_in.generated:
        return f"{where} (sign in with ALMANAC_FLOWER_PASSWORD)"
    return f"{where} (sign in as {sign_in.user} with the password {sign_in.password})"


def _secret(name: str) -> bool:
    setting = name.removesuffix("_FILE")
    return setting in _SECRETS or (setting.startswith("ALMANAC_") and setting.endswith("_CLIENT_SECRET"))


def _require_takeable(name: str, value: str, without: str) -> None:
    if not value.isascii() or not value.isprintable() or any(each in value for each in without):
        raise SettingsError(f"{name} must be printable ASCII without {' and '.join(without)}")
