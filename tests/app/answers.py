"""Checks of answers, and of stored data, for the tests of several routes."""

from __future__ import annotations

import itertools

from sqlalchemy import select

from app.services import EXTENSION
from store.sql.models import OAuthConnection, User

# The fields of every error, and those of an error that comes from a provider.
OF_ERROR = {"data", "error", "code"}
OF_PROVIDER = {"reason", "failedCalendars"}
# Those of some errors.
OF_SOME = OF_PROVIDER | {"param", "retryAfter"}

RELATIONS = {"oauthConnections", "organizations"}
# The relations that an answer has, by the query.
INCLUDED = {
    "": RELATIONS,
    "include=oauthConnections": {"oauthConnections"},
    "include[]=organizations": {"organizations"},
    "include=organizations,oauthConnections": RELATIONS,
    "include=": RELATIONS,
}


def error(answer, status):
    """The message of an error answer."""
    assert answer.status_code == status, answer.text
    assert answer.json.keys() - OF_SOME == OF_ERROR
    assert answer.json["data"] is None
    return answer.json["error"]


def connections_of(user):
    """The SQL statement for a user's stored connections."""
    return select(OAuthConnection).join(User).where(User.custom_id == user)


def cached(stores, ids):
    """The Redis keys with data of these connections; the mark of a write has no data."""
    # The keys of the rate limiter expire within seconds and have no data of the account.
    names = [name.decode() for name in stores.redis.scan_iter(count=1000)]
    names = [name for name in names if not name.startswith(("pace:", "pause:", "throttle:"))]
    kept = [name for name in names if not name.startswith("busy-generation:")]
    return [name for name in kept if any(each in name for each in ids)]


def forget_patience(api):
    """Ends a provider's ``Retry-After`` period now."""
    redis = api.client.application.extensions[EXTENSION].stores.redis
    for key in redis.scan_iter("pause:*"):
        redis.delete(key)


def pages(api, path, limit):
    """Read all pages of a list by cursor."""
    cursor = {}
    for _ in itertools.count():
        page = api.get(path, limit=limit, **cursor).json
        yield [entry.get("id") or entry["slug"] for entry in page["data"]]
        if page["nextCursor"] is None:
            return
        cursor = {"cursor": page["nextCursor"]}
