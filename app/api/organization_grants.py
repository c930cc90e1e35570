"""Routes for the grants of organizations and the members who are read by them."""

from __future__ import annotations

from typing import Any

from flask import Response
from flask.views import MethodView

from app.accounts import delegations, directory, organization_grants
from app.accounts.delegations import ImportedMember
from app.accounts.disconnect import clean_up
from app.api import replay_access
from app.http.authentication import caller
from app.http.responses import json_response
from app.http.routes import Blueprint, route_facts
from app.schemas.error_codes import Code
from app.schemas.organization_grants import (
    DirectoryAnswer,
    DirectoryQuery,
    GoogleGrantBody,
    GrantSchema,
    ImportBody,
    ImportedMembersSchema,
    MicrosoftGrantBody,
    entry_view,
    grant_view,
)
from app.schemas.records import SuccessSchema
from app.services import services
from providers.directory import KINDS

blp = Blueprint(
    "grants",
    __name__,
    metric_group="organizations",
    description="One grant for a whole organization: an administrator of a Google Workspace domain or a "
    "Microsoft 365 tenant connects once, and members need no consent of their own.",
    no_store=True,
)

# What checking a grant may fail with.
CHECKED = (
    Code.GRANT_REFUSED,
    Code.RATE_LIMITED,
    Code.PROVIDER_ERROR,
    Code.OVERLOADED,
    Code.NO_WORKER,
)


@blp.route("/organizations/<org_slug:orgSlug>/grants")
class Grants(MethodView):
    @route_facts("listGrants")
    @blp.response(200, GrantSchema(many=True))
    def get(self, orgSlug: str) -> list[dict[str, Any]]:
        """List an organization's grants

        At most one of each provider. Secrets are never shown.
        """
        with services().stores.database.reading() as session:
            return [grant_view(each) for each in organization_grants.listed(session, caller(), orgSlug)]


@blp.route("/organizations/<org_slug:orgSlug>/grants/google")
class GoogleGrant(MethodView):
    @route_facts("storeGoogleGrant", codes=CHECKED)
    @blp.arguments(GoogleGrantBody)
    @blp.response(200, GrantSchema)
    def put(self, body: dict[str, Any], orgSlug: str) -> dict[str, Any]:
        """Store a grant of Google

        A service account with domain-wide delegation. It is checked with Google before it is stored. A grant
        that is there already is replaced, and keeps its members.
        """
        return grant_view(
            organization_grants.store_google(
                caller(), orgSlug, body["serviceAccountKey"], body["subject"], body["scope"]
            )
        )


@blp.route("/organizations/<org_slug:orgSlug>/grants/microsoft")
class MicrosoftGrant(MethodView):
    @route_facts(
        "storeMicrosoftGrant",
        codes=(*CHECKED, Code.KEY_BOUND_TO_ORGANIZATION, Code.PROVIDER_NOT_CONFIGURED),
    )
    @blp.arguments(MicrosoftGrantBody)
    @blp.response(200, GrantSchema)
    def put(self, body: dict[str, Any], orgSlug: str) -> dict[str, Any]:
        """Store a grant of Microsoft

        An application with application permissions and admin consent. It is checked with Microsoft before it
        is stored. A grant that is there already is replaced, and keeps its members.
        """
        return grant_view(
            organization_grants.store_microsoft(
                caller(),
                orgSlug,
                body["tenant"],
                body["clientId"],
                body["clientSecret"],
                body["certificate"],
                body["thumbprint"],
            )
        )


@blp.route("/organizations/<org_slug:orgSlug>/grants/<grant_provider:provider>")
class Grant(MethodView):
    @route_facts("getGrant", codes=(Code.GRANT_NOT_FOUND,))
    @blp.response(200, GrantSchema)
    def get(self, orgSlug: str, provider: str) -> dict[str, Any]:
        """Read a grant

        Secrets are never shown.
        """
        with services().stores.database.reading() as session:
            return grant_view(organization_grants.find(session, caller(), orgSlug, provider))

    @route_facts("deleteGrant", codes=(Code.GRANT_NOT_FOUND,))
    @blp.response(200, SuccessSchema)
    def delete(self, orgSlug: str, provider: str) -> dict[str, bool]:
        """Delete a grant

        With its delegated connections. Users and memberships stay. Nothing is revoked at the provider: the
        administrator removes the authorization there.
        """
        organization_grants.remove(caller(), orgSlug, provider)
        return {"success": True}


@blp.route("/organizations/<org_slug:orgSlug>/grants/<grant_provider:provider>/members")
class GrantMembers(MethodView):
    @route_facts(
        "importGrantMembers",
        replay_check=replay_access.grant_members,
        codes=(Code.GRANT_NOT_FOUND, Code.USER_EXISTS, Code.USER_IN_OTHER_ORGANIZATIONS),
    )
    @blp.arguments(ImportBody)
    @blp.response(200, ImportedMembersSchema)
    def post(self, body: dict[str, Any], orgSlug: str, provider: str) -> dict[str, Any]:
        """Import members

        Makes users, memberships and delegated connections, as far as they are missing; a connection of the
        user with the same provider is replaced. All members are imported, or none. Repeating the request
        changes nothing. Mailboxes are not read: one that does not exist is named by the first request that
        needs it.
        """
        members = [ImportedMember(each["userId"], each["email"]) for each in body["members"]]
        with services().stores.database.writing() as session:
            imported = delegations.import_members(session, caller(), orgSlug, provider, members)
        clean_up(imported.replaced)
        return {
            "created": imported.created,
            "changed": imported.changed,
            "unchanged": imported.unchanged,
        }


@blp.route("/organizations/<org_slug:orgSlug>/grants/<grant_provider:provider>/directory")
class GrantDirectory(MethodView):
    @route_facts("listDirectory", fails_with_provider=True, codes=(Code.GRANT_NOT_FOUND,))
    @blp.arguments(DirectoryQuery, location="query")
    @blp.response(200, DirectoryAnswer)
    def get(self, params: dict[str, Any], orgSlug: str, provider: str) -> Response:
        """List the directory

        People and rooms of the organization, by address, as the provider lists them now: nothing is stored.
        Suspended, disabled and guest accounts are left out. The grant needs a scope or permission for each
        kind; without it, the answer is 403 with what to add.
        """
        kinds = KINDS if params.get("kind") is None else (params["kind"],)
        found = directory.listed(caller(), orgSlug, provider, kinds, params["q"])
        answer: dict[str, Any] = {"data": [entry_view(*each) for each in found.entries]}
        return json_response(answer | ({"more": True} if found.more else {}))
