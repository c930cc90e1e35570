"""The key file of a Google service account.

https://developers.google.com/identity/protocols/oauth2/service-account#creatinganaccount
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from providers.oauth import private_keys
from providers.oauth.private_keys import PrivateKey


class InvalidKey(ValueError):
    """The text is not the key file of a Google service account; ``field`` is the field at fault, if any."""

    def __init__(self, sentence: str, field: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.field = field


@dataclass(frozen=True, slots=True)
class ServiceAccountKey:
    """The key of a Google service account; ``private_key`` is its RSA key."""

    client_email: str
    private_key: PrivateKey = field(repr=False)
    private_key_id: str | None = None
    client_id: str | None = None

    @classmethod
    def parse(cls, key: Mapping[str, Any]) -> ServiceAccountKey:
        """Read the fields of a key file, which Google offers for download as JSON.

        https://developers.google.com/identity/protocols/oauth2/service-account#creatinganaccount

        :raise InvalidKey: when a field is missing or wrong
        """
        if key.get("type") != "service_account":
            raise InvalidKey("type is not service_account: upload the JSON key of a service account", "type")
        client_email, private_key = _text(key, "client_email"), _text(key, "private_key")
        if "@" not in client_email:
            raise InvalidKey("client_email is no e-mail address", "client_email")
        return cls(
            client_email,
            _rsa_key(private_key),
            _text(key, "private_key_id", required=False),
            _text(key, "client_id", required=False),
        )


def _rsa_key(pem: str) -> PrivateKey:
    try:
        return private_keys.load(pem)
    except private_keys.WrongSize:
        sizes = f"{private_keys.MIN_BITS} to {private_keys.MAX_BITS} bits"
        raise InvalidKey(f"private_key must have {sizes}", "private_key") from None
    except private_keys.NotAnRsaKey:
        raise InvalidKey("private_key is no private RSA key in PEM format", "private_key") from None


def _text(key: Mapping[str, Any], field: str, *, required: bool = True) -> Any:
    value = key.get(field)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not value:
        raise InvalidKey(f"{field} is missing from the key file of the service account", field)
    return value
