"""Routes for API keys, for keys that may manage keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from flask.views import MethodView

from app.accounts import managed_keys
from app.api import replay_access
from app.http import paging
from app.http.authentication import caller, caller_organization_id
from app.http.routes import Blueprint, route_facts
from app.schemas.api_keys import (
    KeyBody,
    KeyChangeBody,
    KeyRotationBody,
    KeySchema,
    NewKeySchema,
    RotatedKeySchema,
    key_view,
)
from app.schemas.error_codes import Code
from app.schemas.fields import KEY_ID
from app.schemas.parameters import PageQuery
from app.schemas.records import SuccessSchema
from app.services import services
from store.sql.models import ApiKey
from store.sql.queries import api_keys

blp = Blueprint(
    "keys",
    __name__,
    metric_group="other",
    description="API keys, managed by an API key that was made for this.",
    no_store=True,
)

# The columns of the fields of a change.
COLUMNS = {
    "name": "name",
    "readOnly": "read_only",
    "showTokens": "shows_tokens",
    "expiresAt": "expires_at",
    "rateLimit": "rate_limit",
}


@blp.route("/keys")
class Keys(MethodView):
    @route_facts("listKeys", manages_keys=True)
    @blp.arguments(PageQuery, location="query")
    @blp.response(200, KeySchema(many=True))
    def get(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        """List API keys

        The valid keys. A managing key that is bound to an organization sees those of its
        organization.
        """
        after = paging.after(params, KEY_ID)
        with services().stores.database.reading() as session:
            rows = api_keys.reached(
                session,
                organization_id=caller_organization_id(),
                after=ApiKey.number_of(after) if after else None,
                limit=paging.one_more(params),
            )
        return [key_view(row) for row in paging.cut(params, rows, "public_id")]

    @route_facts(
        "createKey",
        manages_keys=True,
        replay_check=replay_access.key,
        codes=(Code.KEY_EXCEEDS_MANAGER, Code.ORGANIZATION_NOT_FOUND, Code.TOO_MANY_KEYS),
    )
    @blp.arguments(KeyBody)
    @blp.response(201, NewKeySchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create an API key

        The answer holds the key, which is not shown again. The new key may do no more than the managing one:
        it is of the same organization if that is bound to one, it shows tokens only if that does, it expires
        no later, and its rate limit is not higher. It cannot manage keys. An organization has up to 1 000
        keys.
        """
        with services().stores.database.writing() as session:
            row, key = managed_keys.create(
                session,
                caller(),
                name=body["name"],
                organization=body["organization"],
                read_only=body["readOnly"],
                shows_tokens=body["showTokens"],
                expires_at=body["expiresAt"],
                rate_limit=body["rateLimit"],
            )
        return {**key_view(row), "key": key}


@blp.route("/keys/<key_id:keyId>")
class KeyById(MethodView):
    @route_facts("getKey", manages_keys=True)
    @blp.response(200, KeySchema)
    def get(self, keyId: str) -> dict[str, Any]:
        """Read an API key

        The key itself is not shown again.
        """
        with services().stores.database.reading() as session:
            return key_view(managed_keys.find(session, caller(), keyId))

    @route_facts("updateKey", manages_keys=True, codes=(Code.KEY_EXCEEDS_MANAGER,))
    @blp.arguments(KeyChangeBody)
    @blp.response(200, KeySchema)
    def patch(self, body: dict[str, Any], keyId: str) -> dict[str, Any]:
        """Change an API key

        Fields that are not in the body stay unchanged. After the change the key may do no more than the
        managing one. It takes effect with the next request.
        """
        columns = {COLUMNS[name]: value for name, value in body.items()}
        with services().stores.database.writing() as session:
            return key_view(managed_keys.change(session, caller(), keyId, columns))

    @route_facts("deleteKey", manages_keys=True)
    @blp.response(200, SuccessSchema)
    def delete(self, keyId: str) -> dict[str, bool]:
        """Revoke an API key

        Requests with it are refused from the next one on, and consent links that were made with it connect
        nothing. Keys that it has made stay valid.
        """
        with services().stores.database.writing() as session:
            managed_keys.revoke(session, caller(), keyId)
        return {"success": True}


@blp.route("/keys/<key_id:keyId>/rotate")
class KeyRotation(MethodView):
    @route_facts(
        "rotateKey",
        manages_keys=True,
        replay_check=replay_access.key,
        codes=(Code.KEY_EXCEEDS_MANAGER,),
    )
    @blp.arguments(KeyRotationBody)
    @blp.response(200, RotatedKeySchema)
    def post(self, body: dict[str, Any], keyId: str) -> dict[str, Any]:
        """Replace an API key

        The answer holds the new key, which is not shown again. Its id, its rights and its rate limit
        stay. For `overlapSeconds` the replaced key is valid too, so that programs can change over without a
        failed request. A key can replace itself. One that may do more than the managing key is not
        replaced.
        """
        overlap = timedelta(seconds=body["overlapSeconds"])
        with services().stores.database.writing() as session:
            row, key = managed_keys.rotate(session, caller(), keyId, overlap=overlap)
        return {**key_view(row), "key": key, "previousKeyUntil": row.previous_until}
