"""The rows of API keys."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import insert

from store.sql.models import ApiKey, now
from tests.conftest import Api, stores_of
from tests.contract.records import NEXT
from tests.contract.rows import Row, bad, may_not_write, missing, of, ok
from tests.contract.shapes import DONE, TIME, data, nullable
from tests.contract.world import World

KEY = {
    "id": re.compile(r"key_[1-9][0-9]*"),
    "name": str,
    "visible": str,
    "organization": nullable(str),
    "readOnly": bool,
    "showTokens": bool,
    "manageKeys": bool,
    "createdAt": TIME,
    "expiresAt": nullable(TIME),
    "lastUsedAt": nullable(TIME),
    "rateLimit": nullable(int),
}
MADE = KEY | {"key": re.compile(r"alm_[\w-]+")}
ROTATED = MADE | {"previousKeyUntil": TIME}
EXCEEDING = {"data": None, "error": str, "code": str, "param": str}
ALL = {
    "name": "billing",
    "organization": "{orgSlug}",
    "readOnly": True,
    "showTokens": False,
    "expiresAt": "2199-01-01T00:00:00Z",
    "rateLimit": "600",
}

OTHER_NAMES = ("organizationSlug", "organizationSlugs", "orgSlug", "organizations")


def managing_all(world: World) -> None:
    """The caller has a key of the whole service that manages keys."""
    world.api = world.new_api(manages_keys=True)


def managing(world: World, **rights: Any) -> None:
    """The caller has a key of the user's organization that manages keys."""
    world.api = world.new_api(organization=world.names["orgSlug"], manages_keys=True, **rights)


def managed(world: World) -> None:
    """``keyId`` is a key that this one has made."""
    managing(world)
    world.names["keyId"] = world.api.post("/keys", {"name": "billing"}).json["data"]["id"]


def powerful(world: World) -> None:
    """``keyId`` is a key of the same organization that shows tokens."""
    managing(world, shows_tokens=True)
    body = {"name": "audit", "showTokens": True}
    world.names["keyId"] = world.api.post("/keys", body).json["data"]["id"]
    managing(world)


def beside(world: World) -> None:
    """There is another organization."""
    managing(world)
    world.names["taken"] = world.new_organization()


def limited(world: World) -> None:
    """The caller has a limit."""
    managing(world, rate_limit=600)


def crowded(world: World) -> None:
    """There are as many keys of the organization as may be."""
    managing(world)
    stores = stores_of(world.api.client.application)
    with stores.database.writing() as session:
        (own,) = session.query(ApiKey.organization_id).order_by(ApiKey.id.desc()).limit(1).one()
        prefix = world.names["orgSlug"]
        many = [
            {
                "name": "one of many",
                "visible": "alm_",
                "digest": f"{prefix}-{number}"[-64:],
                "organization_id": own,
                "created_at": now(),
            }
            for number in range(1000)
        ]
        session.execute(insert(ApiKey), many)


def elsewhere(world: World) -> None:
    """The caller manages the keys of another organization than the key's."""
    managed(world)
    world.api = world.new_api(organization=world.new_organization(), manages_keys=True)


def plain(world: World) -> None:
    """The caller has a key that does not manage keys."""
    world.api = Api(world.api.client, world.new_api().key)


NOBODY = {"keyId": "key_999999999"}


def may_not_manage(**more: Any) -> Row:
    return bad("This API key may not manage API keys", 403, "keyMayNotManageKeys", key=plain, **more)


def exceeding(message: str, **more: Any) -> Row:
    return bad(message, 403, "keyExceedsManager", shape=EXCEEDING, **more)


ROWS: tuple[Row, ...] = (
    *of(
        "GET /keys",
        ok(data([KEY]), setup=managed),
        ok(data([KEY], **NEXT), query={"limit": "1"}, setup=managed),
        bad("limit", query={"limit": "0"}, setup=managing),
        # Cursors that another list would give, "zwl" and a number beyond all ids.
        bad("cursor is not one", query={"cursor": "ends"}, setup=managing),
        bad("cursor is not one", query={"cursor": "a2V5Xzk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5"}, setup=managing),
        may_not_manage(),
    ),
    *of(
        "POST /keys",
        ok(data(MADE), 201, body={"name": "billing"}, setup=managing),
        ok(data(MADE), 201, body=ALL, setup=managing),
        bad("name is required", body={}, setup=managing),
        bad("readOnly must be true or false", body={"name": "x", "readOnly": "yes"}, setup=managing),
        bad(
            "expiresAt must lie in the future", body={"name": "x", "expiresAt": "2020-01-01"}, setup=managing
        ),
        bad("rateLimit must be between 1 and", body={"name": "x", "rateLimit": 0}, setup=managing),
        # Ignored, each of these would make a key that is bound to no organization.
        *(
            bad(f"{name} is no field of API keys", body={"name": "x", name: "{orgSlug}"}, setup=managing_all)
            for name in OTHER_NAMES
        ),
        # Ignored, these would make a key that may do more than was wanted.
        *(
            bad(f"{name} is no field of API keys", body={"name": "x", name: "north"}, setup=managing_all)
            for name in ("readonly", "read_only", "expires", "rate_limit", "scopes", "tenant")
        ),
        bad("manageKeys must not be given", body={"name": "x", "manageKeys": True}, setup=managing),
        ok(data(MADE), 201, body={"name": "x", "manageKeys": False, "orgSlug": None}, setup=managing),
        exceeding("showTokens would let", body={"name": "x", "showTokens": True}, setup=managing),
        exceeding("rateLimit would let", body={"name": "x", "rateLimit": 601}, setup=limited),
        missing("Organization not found", body={"name": "x", "organization": "{taken}"}, setup=beside),
        bad(
            "The organization has 1000 API keys already",
            409,
            "tooManyKeys",
            body={"name": "x"},
            setup=crowded,
        ),
        may_not_write(body={"name": "x"}),
        may_not_manage(body={"name": "x"}),
    ),
    *of(
        "GET /keys/{keyId}",
        ok(data(KEY), setup=managed),
        missing("API key not found", setup=managing, names=NOBODY),
        missing("API key not found", setup=managing, names={"keyId": "key_0"}),
        missing("API key not found", setup=elsewhere),
        may_not_manage(names=NOBODY),
    ),
    *of(
        "PATCH /keys/{keyId}",
        ok(data(KEY), body={"name": "invoices", "readOnly": True, "rateLimit": 60}, setup=managed),
        ok(data(KEY), body={"expiresAt": None, "rateLimit": None}, setup=managed),
        ok(data(KEY), body={}, setup=powerful),
        bad("organization cannot be changed", body={"organization": "{orgSlug}"}, setup=managed),
        *(bad(f"{name} cannot be changed", body={name: "{orgSlug}"}, setup=managed) for name in OTHER_NAMES),
        bad("manageKeys cannot be changed", body={"manageKeys": True}, setup=managed),
        bad("read_only is no field of API keys", body={"read_only": True}, setup=managed),
        exceeding("showTokens would let", body={"showTokens": True}, setup=managed),
        exceeding("showTokens would let", body={"name": "mine"}, setup=powerful),
        missing("API key not found", body={}, setup=elsewhere),
        may_not_write(body={}, names=NOBODY),
        may_not_manage(body={}, names=NOBODY),
    ),
    *of(
        "POST /keys/{keyId}/rotate",
        ok(data(ROTATED), body={"overlapSeconds": 3600}, setup=managed),
        ok(data(ROTATED), body={}, setup=managed),
        ok(data(ROTATED | {"previousKeyUntil": None}), body={"overlapSeconds": 0}, setup=managed),
        bad("overlapSeconds must be between", body={"overlapSeconds": -1}, setup=managed),
        exceeding("showTokens would let", body={}, setup=powerful),
        missing("API key not found", body={}, setup=elsewhere),
        may_not_write(body={}, names=NOBODY),
        may_not_manage(body={}, names=NOBODY),
    ),
    *of(
        "DELETE /keys/{keyId}",
        ok(data(DONE), setup=managed),
        ok(data(DONE), setup=powerful),
        missing("API key not found", setup=elsewhere),
        may_not_write(names=NOBODY),
        may_not_manage(names=NOBODY),
    ),
)
