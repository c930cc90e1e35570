"""What tests of several routes ask of answers, and of what is kept behind them."""

from __future__ import annotations

import itertools

from sqlalchemy import select

from app.services import EXTENSION
from store.sql.models import OAuthConnection, User

# The fields of an error that comes from a provider.
OF_PROVIDER = {"reason", "failedCalendars"}


def error(answer, status):
    """The sentence of an error."""
    assert answer.status_code == status, answer.text
    assert answer.json.keys() - OF_PROVIDER == {"data", "error"}
    assert answer.json["data"] is None
    return answer.json["error"]


def connections_of(user):
    """The statement for a user's connections as they are stored."""
    return select(OAuthConnection).join(User).where(User.custom_id == user)


def cached(stores, ids):
    """The names in Redis that hold something of these connections; the mark of a write holds nothing."""
    # How often an account was asked is paced and forgotten within moments, and says nothing of it.
    names = [name.decode() for name in stores.redis.scan_iter(count=1000)]
    names = [name for name in names if not name.startswith("throttle:")]
    kept = [name for name in names if not name.startswith("busy-generation:")]
    return [name for name in kept if any(each in name for each in ids)]


def forget_patience(api):
    """As if the time were over that a provider has named."""
    redis = api.client.application.extensions[EXTENSION].stores.redis
    for key in redis.scan_iter("throttle:*"):
        redis.delete(key)


def pages(api, path, limit):
    """Walk a list by its cursors."""
    cursor = {}
    for _ in itertools.count():
        page = api.get(path, limit=limit, **cursor).json
        yield [entry.get("id") or entry["slug"] for entry in page["data"]]
        if page["nextCursor"] is None:
            return
        cursor = {"cursor": page["nextCursor"]}
