"""Routes to connect accounts by OAuth consent."""

from __future__ import annotations

from typing import Any

from flask import Response, request
from flask.views import MethodView

from app.accounts import consent_refusals, oauth_flow, oauth_result_page
from app.accounts.consent_refusals import ConsentRefused
from app.http.authentication import caller
from app.http.errors import ApiError
from app.http.hosts import base_url
from app.http.routes import Blueprint, route_facts
from app.schemas.connections import AuthorizeBody, LinkQuery, LinkSchema, ProviderLinkSchema, VerifyBody
from app.schemas.error_codes import Code
from app.schemas.records import SuccessSchema
from providers import registry
from store.security.one_time_secrets import PendingConsent
from store.sql.queries.user_invitations import ConsentRefusal

blp = Blueprint(
    "authorization",
    __name__,
    metric_group="oauth",
    description="Connecting accounts by consent. You make a link, the person opens it and agrees at the "
    "provider, and the provider sends their browser back to this service or to you.",
)


@blp.route("/users/<user_id:userId>/oauth/<consent_provider:provider>/authorize")
class Authorize(MethodView):
    @route_facts("createConsentLink", codes=(Code.PROVIDER_NOT_CONFIGURED, Code.CONNECTION_NOT_FOUND))
    @blp.arguments(AuthorizeBody)
    @blp.response(200, LinkSchema)
    def post(self, body: dict[str, Any], userId: str, provider: str) -> dict[str, str]:
        """Make a link to connect an account

        The person who opens it and agrees at the provider connects an account to this user. It replaces the
        default connection with the provider; with `account`, it becomes another connection, or only the
        account of a certain connection may answer. The link stops working when this API key is revoked or
        expires.
        """
        return {"link": oauth_flow.begin(caller(), userId, provider, body, site=base_url())}


@blp.route("/users/<user_id:userId>/oauth/<consent_provider:provider>/link")
class Link(MethodView):
    @route_facts(
        "getConsentLink", writes=True, codes=(Code.PROVIDER_NOT_CONFIGURED, Code.CONNECTION_NOT_FOUND)
    )
    @blp.arguments(LinkQuery, location="query")
    @blp.response(200, LinkSchema)
    def get(self, params: dict[str, Any], userId: str, provider: str) -> dict[str, str]:
        """Make a link to connect an account, by query

        As by POST, for callers who prefer a query. A read-only API key may not make links.
        """
        return {"link": oauth_flow.begin(caller(), userId, provider, params, site=base_url())}


@blp.route("/users/<user_id:userId>/oauth/links")
class Links(MethodView):
    @route_facts("listConsentLinks", writes=True, codes=(Code.CONNECTION_NOT_FOUND,))
    @blp.arguments(LinkQuery, location="query")
    @blp.response(200, ProviderLinkSchema(many=True))
    def get(self, params: dict[str, Any], userId: str) -> list[dict[str, str]]:
        """Make a link for each configured provider

        The answer lists the providers that this installation has credentials for. A person opens the link
        of their provider. If `account` is the id of a connection, there is a link for its provider only.
        """
        only = oauth_flow.provider_of(caller(), userId, params["account"])
        return [
            {"provider": name, "link": oauth_flow.begin(caller(), userId, name, params, site=base_url())}
            for name in oauth_flow.offered()
            if only in (None, name)
        ]


@blp.route("/users/oauth/<consent_provider:provider>/verify")
class Verify(MethodView):
    @route_facts(
        "verifyConsent",
        fails_with_provider=True,
        codes=(
            Code.CONSENT_FAILED,
            Code.ACCOUNT_MISMATCH,
            Code.CALENDAR_ACCESS_NOT_GRANTED,
            Code.USER_IN_OTHER_ORGANIZATIONS,
            Code.USER_NOT_FOUND,
        ),
    )
    @blp.arguments(VerifyBody)
    @blp.response(200, SuccessSchema)
    def post(self, body: dict[str, Any], provider: str) -> dict[str, bool]:
        """Finish a consent whose redirect came to you

        With the `code` and `state` that the provider sent to your `redirectUrl`. An account other than
        `expectedEmail`, and a consent that grants no access to calendars, are refused and change nothing.
        """
        consent = oauth_flow.take(body["state"], provider)
        if consent is None:
            raise ConsentRefused(ConsentRefusal.STALE)
        oauth_flow.check_reach(caller(), consent)
        oauth_flow.finish(consent, body["code"])
        return {"success": True}


@blp.route("/oauth/<consent_provider:provider>/callback")
class Callback(MethodView):
    # Without an operation id: browsers come here, and no program.
    @route_facts(needs_key=False)
    def get(self, provider: str) -> Response:
        """Finish a consent with a page, or at ``returnUrl``.

        Providers send the browser here. The request has no API key: ``state`` is the proof, and works once.
        The API key that made the link must still be in force.
        """
        state = request.args.get("state", "")
        consent = oauth_flow.take(state, provider)
        if consent is None or not consent.ours:
            return oauth_result_page.stale(provider)
        try:
            _finish(consent, state)
        except ApiError as error:
            return oauth_result_page.finished(consent, error)
        return oauth_result_page.finished(consent, None)


def _finish(consent: PendingConsent, state: str) -> None:
    oauth_flow.check_browser(consent, state, request.cookies)
    if word := request.args.get("error"):
        raise consent_refusals.of_provider(registry.title(consent.provider), word)
    code = request.args.get("code")
    if not code:
        raise ConsentRefused(ConsentRefusal.NO_CODE)
    oauth_flow.finish(consent, code)
