"""Routes to connect accounts by OAuth consent."""

from __future__ import annotations

from typing import Any

from flask import Response, request
from flask.views import MethodView

from app.accounts import oauth_flow, oauth_result_page
from app.http.auth import caller
from app.http.base_url import base_url
from app.http.blueprint import Blueprint
from app.http.errors import ApiError, Invalid
from app.http.route_facts import route_facts
from app.schemas.authorization import AuthorizeBody, LinkQuery, LinkSchema, ProviderLinkSchema, VerifyBody
from app.schemas.records import SuccessSchema
from providers.names import ProviderName
from store.security.oauth_states import PendingConsent

blp = Blueprint(
    "authorization", __name__, metric_group="oauth", description="Connecting provider accounts by consent"
)

_PAGE = {"text/html": {"schema": {"type": "string"}}}
_PAGE_OR_ERROR = {**_PAGE, "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
_LOCATION = {"Location": {"schema": {"type": "string"}, "description": "`returnUrl`, with the outcome."}}

CALLBACK_ANSWERS: dict[str, Any] = {
    "200": {"description": "A page: the account is connected.", "content": _PAGE},
    "302": {"description": "To `returnUrl`, when there is one.", "headers": _LOCATION},
    "400": {
        "description": (
            "A page: access was refused, the account is not `expectedEmail`, no calendar access was granted, "
            "or the link is not valid."
        ),
        "content": _PAGE_OR_ERROR,
    },
    "403": {"description": "A page: other organizations share the user meanwhile.", "content": _PAGE},
    "404": {"description": "A page: the user was deleted meanwhile.", "content": _PAGE},
    "429": {"description": "A page: the provider throttles us.", "content": _PAGE},
    "502": {"description": "A page: the provider failed, or refuses this installation.", "content": _PAGE},
}
CALLBACK_QUERY = [
    {"in": "query", "name": name, "schema": {"type": "string"}, "description": description}
    for name, description in (
        ("state", "From the link."),
        ("code", "From the provider, when access was granted."),
        ("error", "From the provider, when it was not."),
    )
]


@blp.route("/users/<user_id:userId>/oauth/<provider:provider>/authorize")
class Authorize(MethodView):
    @route_facts("authorize")
    @blp.arguments(AuthorizeBody)
    @blp.response(200, LinkSchema)
    def post(self, body: dict[str, Any], userId: str, provider: str) -> dict[str, str]:
        """Make a link to connect an account

        The person who opens it and agrees at the provider connects an account to this user. The account
        replaces one of the same provider: a user has at most one with each. The link stops working when this
        API key is revoked or expires.
        """
        return {"link": oauth_flow.begin(caller(), userId, provider, body, site=base_url())}


@blp.route("/users/<user_id:userId>/oauth/<provider:provider>/link")
class Link(MethodView):
    @route_facts("getLink", writes=True)
    @blp.arguments(LinkQuery, location="query")
    @blp.response(200, LinkSchema)
    def get(self, query: dict[str, Any], userId: str, provider: str) -> dict[str, str]:
        """Make a link to connect an account, by query"""
        return {"link": oauth_flow.begin(caller(), userId, provider, query, site=base_url())}


@blp.route("/users/<user_id:userId>/oauth/links")
class Links(MethodView):
    @route_facts("listLinks", writes=True)
    @blp.arguments(LinkQuery, location="query")
    @blp.response(200, ProviderLinkSchema(many=True))
    def get(self, query: dict[str, Any], userId: str) -> list[dict[str, str]]:
        """Make a link for each configured provider"""
        return [
            {"provider": name, "link": oauth_flow.begin(caller(), userId, name, query, site=base_url())}
            for name, provider in oauth_flow.providers().items()
            if provider.configured
        ]


@blp.route("/users/oauth/<provider:provider>/verify")
class Verify(MethodView):
    @route_facts("verify", fails_with_provider=True)
    @blp.arguments(VerifyBody)
    @blp.response(200, SuccessSchema)
    def post(self, body: dict[str, Any], provider: str) -> dict[str, bool]:
        """Finish a consent whose redirect came to you

        With the `code` and `state` that the provider sent to your `redirectUrl`. An account other than
        `expectedEmail`, and a consent that grants no access to calendars, are refused and change nothing.
        """
        authorization = oauth_flow.take(body["state"], provider)
        if authorization is None:
            raise Invalid(oauth_flow.STALE)
        oauth_flow.check_reach(caller(), authorization)
        oauth_flow.finish(authorization, body["code"])
        return {"success": True}


@blp.route("/oauth/<provider:provider>/callback")
class Callback(MethodView):
    @route_facts("getCallback", needs_key=False)
    @blp.doc(security=[], parameters=CALLBACK_QUERY, responses=CALLBACK_ANSWERS)
    def get(self, provider: str) -> Response:
        """Finish a consent

        Where providers send the browser. It asks for no API key: `state` is the proof, and works once. The
        API key that made the link has to be in force still.
        """
        state = request.args.get("state", "")
        authorization = oauth_flow.take(state, provider)
        if authorization is None or not authorization.ours:
            return oauth_result_page.stale(ProviderName(provider))
        try:
            _finish(authorization, state)
        except ApiError as error:
            return oauth_result_page.finished(authorization, error)
        return oauth_result_page.finished(authorization, None)


def _finish(authorization: PendingConsent, state: str) -> None:
    oauth_flow.check_browser(authorization, state, request.cookies)
    if word := request.args.get("error"):
        raise oauth_flow.refusal(ProviderName(authorization.provider), word)
    code = request.args.get("code")
    if not code:
        raise Invalid("The provider sent no code")
    oauth_flow.finish(authorization, code)
