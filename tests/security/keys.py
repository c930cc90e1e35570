"""Every kind of key, and of values that could be mistaken for one."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from store.sql.models import now
from store.sql.queries import api_keys, organizations
from store.stores import Stores

Headers = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """The rights of a kind of key; ``bound`` is one of a single organization."""

    bound: bool = False
    read_only: bool = False
    shows_tokens: bool = False
    manages_keys: bool = False

    def may(self, kind: str) -> bool:
        """Whether its rights are enough for a row of the matrix, apart from its organization."""
        return {
            "read": True,
            "write": not self.read_only,
            "show": self.shows_tokens,
            "list keys": self.manages_keys,
            "change keys": self.manages_keys and not self.read_only,
        }[kind]


IN_FORCE = {
    f"{whose} {rights}{' shows tokens' if shows else ''}": Kind(whose == "own", rights == "reads", shows)
    for whose in ("all", "own")
    for rights in ("reads", "writes")
    for shows in (False, True)
} | {
    f"{whose} {rights} manages keys": Kind(whose == "own", rights == "reads", manages_keys=True)
    for whose, rights in (("all", "writes"), ("own", "writes"), ("own", "reads"))
}
BOUND = {name: kind for name, kind in IN_FORCE.items() if kind.bound}


def create(stores: Stores, kind: Kind, slug: str = "", **more: Any) -> str:
    """A key of this kind; one that is bound is of the organization ``slug``."""
    with stores.database.writing() as session:
        number = organizations.ids(session, [slug], organization_id=None)[slug] if kind.bound else None
        return api_keys.create(
            session,
            prefix="alm_",
            organization_id=number,
            read_only=kind.read_only,
            shows_tokens=kind.shows_tokens,
            manages_keys=kind.manages_keys,
            **{"name": "matrix", **more},
        )


def _bearer(key: str) -> Headers:
    return {"Authorization": f"Bearer {key}"}


def _basic(key: str) -> Headers:
    return {"Authorization": "Basic " + base64.b64encode(f"{key}:".encode()).decode()}


# Sent in the place of a valid key, and made from one: each is refused.
REFUSED: Mapping[str, Callable[[str], Headers]] = {
    "none": lambda _: {},
    "empty": lambda _: {"Authorization": ""},
    "scheme alone": lambda _: {"Authorization": "Bearer"},
    "scheme and space": lambda _: {"Authorization": "Bearer  "},
    "key alone": lambda key: {"Authorization": key},
    "basic": _basic,
    "token": lambda key: {"Authorization": f"Token {key}"},
    "no space": lambda key: {"Authorization": f"Bearer{key}"},
    "unknown": lambda _: _bearer("alm_" + "x" * 32),
    "prefix alone": lambda _: _bearer("alm_"),
    "visible part": lambda key: _bearer(key[:12]),
    "cut": lambda key: _bearer(key[:-1]),
    "longer": lambda key: _bearer(key + "A"),
    "much longer": lambda _: _bearer("x" * 5000),
    "other case": lambda key: _bearer(key.swapcase()),
    "quoted": lambda key: _bearer(f'"{key}"'),
    "two headers": lambda key: {"Authorization": [f"Bearer {key}", f"Bearer {key}"]},
    "two keys": lambda key: _bearer(f"{key}, {key}"),
    "injection": lambda _: _bearer("' OR '1'='1"),
    "not ASCII": lambda key: _bearer(key + "\xe4"),
    "another header": lambda key: {"X-Api-Key": key, "Proxy-Authorization": f"Bearer {key}"},
    "cookie": lambda key: {"Cookie": f"almanac={key}; Authorization=Bearer {key}; api_key={key}"},
}

# In the query, where logs and histories would keep it.
IN_QUERY = ("access_token", "api_key", "apiKey", "key", "token", "Authorization", "authorization")


def revoked(stores: Stores) -> str:
    key = create(stores, Kind(shows_tokens=True))
    with stores.database.writing() as session:
        api_keys.revoke(session, key, prefix="alm_")
    return key


def expired(stores: Stores) -> str:
    return create(stores, Kind(shows_tokens=True), expires_at=now() - timedelta(seconds=1))


def orphaned(stores: Stores, slug: str) -> str:
    """One of an organization that is deleted."""
    key = create(stores, Kind(bound=True), slug)
    with stores.database.writing() as session:
        organizations.remove(session, organizations.ids(session, [slug], organization_id=None)[slug])
    return key


ENDED = ("revoked", "expired", "of a deleted organization")
