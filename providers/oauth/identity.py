"""The identity of a connected account: its id and e-mail address, as far as the grant allows to read them."""

from __future__ import annotations

import base64
import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from providers.base import Token
from providers.errors import AuthorizationInvalid, ProviderError
from providers.http import errors
from providers.http.calls import Bearer, Call, HttpReply, Json, json_object
from providers.http.send import send

log = logging.getLogger(__name__)

WHO = "oauth.userinfo"

_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+")
_MAX_ADDRESS = 320
_MAX_ID = 256


def claims(id_token: object, audience: str) -> Json:
    """The claims of an id token issued for ``audience``; ``{}`` for another audience or an invalid token.

    The token comes directly from the token endpoint over TLS, so its signature need not be checked:
    https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation (step 6)
    """
    try:
        _, payload, _ = str(id_token).split(".")
        answer = json_object(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except ValueError:
        return {}
    if answer is None:
        return {}
    made_for = answer.get("aud")
    return answer if audience in (made_for if isinstance(made_for, list) else [made_for]) else {}


def _ignoring_case(one: str, other: str) -> bool:
    return one.lower() == other.lower()


@dataclass(frozen=True, slots=True)
class AccountIdentity:
    """The account of a grant. ``verified`` are the addresses that the provider guarantees."""

    id: str | None
    email: str | None
    verified: frozenset[str] = frozenset()
    # Whether two addresses are spellings of one.
    same: Callable[[str, str], bool] = field(default=_ignoring_case, repr=False, compare=False)

    def is_verified_as(self, email: str) -> bool:
        """Whether the provider guarantees that the account has this address, in any spelling of it."""
        return any(self.same(email, address) for address in self.verified)


class IdentityCaller:
    """Calls with a new access token. The address is optional: without it the connection works too."""

    def __init__(self, provider: str, access_token: Token, deadline: float) -> None:
        self._provider = provider
        self._token = access_token
        # The other half of the time is reserved for storing the connection.
        now = time.monotonic()
        self._deadline = now + (deadline - now) / 2

    def get(self, url: str) -> Json:
        """The answer, or ``{}`` when the provider fails."""
        try:
            return send(
                Call(self._provider, WHO, "GET", url),
                _refusal,
                deadline=self._deadline,
                bearer=Bearer(_NewToken(self._token)),
            )
        except ProviderError as error:
            log.info("could not read the account identity at %s: %s", self._provider, error.reason)
            return {}


class _NewToken:
    """A token source with one new token and no refresh."""

    def __init__(self, token: Token) -> None:
        self._token = token

    def access_token(self, *, deadline: float) -> Token:
        return self._token

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        raise AuthorizationInvalid("The provider rejects the token that it has just granted")


def _refusal(reply: HttpReply) -> ProviderError:
    return errors.error(reply.provider, errors.by_status(reply.status), operation=reply.operation)


def account_id(answer: Json, field: str) -> str | None:
    """The id of an account in an answer, if it is a usable one."""
    value = answer.get(field)
    if isinstance(value, str) and 0 < len(value) <= _MAX_ID and value.isprintable():
        return value
    return None


def address(answer: Json, *fields: str) -> str | None:
    """The first address in these fields of an answer."""
    return next(addresses(answer, fields), None)


def addresses(answer: Json, fields: tuple[str, ...]) -> Iterator[str]:
    """The addresses in these fields of an answer."""
    for name in fields:
        value = answer.get(name)
        if isinstance(value, str) and len(value) <= _MAX_ADDRESS and _ADDRESS.fullmatch(value):
            yield value
