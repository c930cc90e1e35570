"""The rows of users, organizations, members and connections."""

from __future__ import annotations

from dataclasses import replace

from store.config.settings import Settings
from tests.conftest import stores_of
from tests.contract.rows import (
    LATER,
    PROVIDER_ERROR,
    PROVIDERS,
    Row,
    bad,
    bad_slug,
    bad_user,
    bound,
    may_not_write,
    missing,
    no_organization,
    no_user,
    of,
    ok,
    showing_tokens,
    token_endpoint_down,
    unknown_provider,
)
from tests.contract.shapes import CONNECTION, DONE, LISTED_USER, ORGANIZATION, TIME, USER, data, nullable
from tests.contract.world import World

NEXT = {"nextCursor": nullable(str)}
NO_CONNECTIONS = {name: shape for name, shape in USER.items() if name != "oauthConnections"}
LISTED_NO_CONNECTIONS = {name: shape for name, shape in LISTED_USER.items() if name != "oauthConnections"}
NO_ORGANIZATIONS = {name: shape for name, shape in USER.items() if name != "organizations"}
TOKENS = {
    "accessToken": "planted-access",
    "refreshToken": "planted-refresh",
    "email": "{own}",
    "expiresAt": "2026-12-31T00:00:00Z",
    "scope": ["openid"],
}
SHOWN = CONNECTION | {"accessToken": str, "refreshToken": str, "expiresAt": TIME}
HIDDEN = CONNECTION | {"accessToken": None, "refreshToken": None}
LINK = {"link": str}
ADDED = {"added": [str], "alreadyMembers": [str], "count": int}
REMOVED = {"removed": [str], "notMembers": [str], "count": int}


def another_user(world: World) -> None:
    """The id ``new`` is in use."""
    world.api.post("/users", {"id": world.names["new"]})


def another_slug(world: World) -> None:
    world.names["taken"] = world.new_organization()


def consented(world: World) -> None:
    """``code`` and ``state`` are in the provider's redirect."""
    world.names |= world.consent()


def invalid_code(world: World) -> None:
    consented(world)
    world.names["code"] = "4/none"


def other_account(world: World) -> None:
    """The user chose another account than the expected one."""
    world.names |= world.consent(expectedEmail="eve@example.com")


def no_calendar_access(world: World) -> None:
    """The user cleared the calendar permissions."""
    world.names |= world.consent({"scope": "openid email"})


def without_google(world: World) -> None:
    """An installation that is not registered with Google."""
    settings: Settings = stores_of(world.api.client.application).settings
    made = world.new_app(providers=replace(settings.providers, google_client_id=""))
    world.api = type(world.api)(made.test_client(), world.api.key)


def refused(world: World) -> None:
    """The user declined."""
    consented(world)
    world.names |= {"error": "access_denied"}


def user_shared(world: World) -> None:
    """A key of the user's organization created the link; then the user joined another organization."""
    everywhere = world.api
    world.api = world.new_api(world.names["orgSlug"])
    consented(world)
    world.api = everywhere
    bound(world)


def user_left(world: World) -> None:
    """A key of the user's organization created the link; then the user left the organization."""
    everywhere = world.api
    world.api = world.new_api(world.names["orgSlug"])
    consented(world)
    world.api = everywhere
    path = f"/organizations/{world.names['orgSlug']}/members"
    assert world.api.delete(path, {"userIds": [world.names["userId"]]}).status_code == 200


def user_gone(world: World) -> None:
    consented(world)
    world.api.delete(f"/users/{world.names['userId']}")


def allowing_returns(world: World) -> None:
    """An installation that redirects browsers to return addresses."""
    made = world.new_app(redirect_urls=(RETURN,))
    world.api = type(world.api)(made.test_client(), world.api.key)
    world.names |= world.consent(returnUrl=RETURN)


def token_down(world: World, **fault: object) -> None:
    consented(world)
    world.sandbox.fault(operation=f"{world.provider}.token", **fault)  # type: ignore[arg-type]


def stale(world: World) -> None:
    """The access token has expired."""
    world.connect(expiresAt="2020-01-01T00:00:00Z")


def stale_and_down(world: World, **fault: object) -> None:
    stale(world)
    world.sandbox.fault(operation=f"{world.provider}.token", **fault)  # type: ignore[arg-type]


def stale_and_revoked(world: World) -> None:
    stale(world)
    world.revoke()


RETURN = "https://app.example.com/connected"
CALLBACK = {"code": "{code}", "state": "{state}"}
PAGE = {"media": "text/html", "key": None}

USERS: tuple[Row, ...] = (
    *of(
        "GET /users",
        ok(data([LISTED_USER])),
        ok(data([LISTED_USER], **NEXT), query={"limit": "2"}),
        ok(data([LISTED_NO_CONNECTIONS]), query={"include": "organizations"}),
        ok(data([NO_ORGANIZATIONS]), query={"include[]": "oauthConnections"}),
        bad("limit", query={"limit": "0"}),
        bad("include", query={"include": "secrets"}),
    ),
    *of(
        "POST /users",
        ok(data(USER), 201, body={"id": "{new}", "organizationSlugs": ["{orgSlug}"]}),
        ok(data(USER), 201, body={"id": "{new}"}),
        bad("id must match", body={"id": "a"}),
        bad("id is required", body={}),
        missing("Organization not found", body={"id": "{new}", "organizationSlugs": ["nowhere"]}),
        bad("User already exists", 409, "userExists", body={"id": "{userId}"}),
        may_not_write(body={"id": "{new}"}),
    ),
    *of(
        "GET /users/{userId}",
        ok(data(USER)),
        ok(data(NO_CONNECTIONS), query={"include": "organizations"}),
        ok(data(NO_ORGANIZATIONS), query={"include[]": "oauthConnections"}),
        bad("include", query={"include": "secrets"}),
        bad_user(),
        no_user(),
    ),
    *of(
        "PUT /users/{userId}",
        ok(data(USER), body={"userId": "{new}"}),
        ok(data(USER), body={"id": "{new}"}),
        ok(data(USER), body={}),
        bad("id must be the same as userId", body={"userId": "{new}", "id": "{userId}"}),
        bad_user(body={"userId": "{new}"}),
        no_user(body={"userId": "{new}"}),
        bad("User already exists", 409, "userExists", body={"userId": "{new}"}, setup=another_user),
        bad(
            "The user belongs to other organizations too",
            403,
            "userInOtherOrganizations",
            body={"userId": "{new}"},
            key=bound,
        ),
        may_not_write(body={"userId": "{new}"}),
    ),
    *of(
        "DELETE /users/{userId}",
        ok(data(USER)),
        bad("include", query={"include": "x"}),
        bad_user(),
        no_user(),
        bad("The user belongs to other organizations too", 403, "userInOtherOrganizations", key=bound),
        may_not_write(),
    ),
    *of(
        "GET /users/{userId}/organizations",
        ok(data([ORGANIZATION])),
        ok(data([ORGANIZATION], **NEXT), query={"limit": "1"}),
        bad("limit", query={"limit": "many"}),
        bad_user(),
        no_user(),
    ),
)

ORGANIZATIONS: tuple[Row, ...] = (
    *of(
        "GET /organizations", ok(data([ORGANIZATION])), bad("cursor", query={"cursor": "none", "limit": "1"})
    ),
    *of(
        "POST /organizations",
        ok(data(ORGANIZATION), body={"slug": "{new}", "name": "Design"}),
        ok(data(ORGANIZATION), body={"slug": "{new}", "name": None}),
        bad("slug must match", body={"slug": "A", "name": "Design"}),
        bad("name must have 1 to 128 characters", body={"slug": "{new}", "name": ""}),
        bad("Organization with slug already exists", 409, "organizationExists", body={"slug": "{orgSlug}"}),
        bad("Creating organizations needs", 403, "keyBoundToOrganization", body={"slug": "{new}"}, key=bound),
        may_not_write(body={"slug": "{new}"}),
    ),
    *of("GET /organizations/{orgSlug}", ok(data(ORGANIZATION)), bad_slug(), no_organization()),
    *of(
        "PUT /organizations/{orgSlug}",
        ok(data(ORGANIZATION), body={"name": "New name", "slug": "{new}"}),
        ok(data(ORGANIZATION), body={}),
        bad("slug must match", body={"slug": "-"}),
        no_organization(body={}),
        bad(
            "Organization with slug already exists",
            409,
            "organizationExists",
            body={"slug": "{taken}"},
            setup=another_slug,
        ),
        may_not_write(body={}),
    ),
    *of(
        "DELETE /organizations/{orgSlug}",
        ok(data(ORGANIZATION)),
        bad_slug(),
        no_organization(),
        bad("Deleting an organization needs", 403, "keyBoundToOrganization", key=bound),
    ),
    *of(
        "GET /organizations/{orgSlug}/members",
        ok(data([USER])),
        ok(data([NO_CONNECTIONS]), query={"include": "organizations"}),
        bad("include", query={"include": "secrets"}),
        no_organization(),
    ),
    *of(
        "POST /organizations/{orgSlug}/members",
        ok(data(str, **ADDED), 201, body={"userIds": ["{lonely}"]}),
        ok(data(str, **ADDED), body={"userIds": ["{userId}"]}),
        bad("userIds must be an array", body={"userIds": "{userId}"}),
        missing("User not found", body={"userIds": ["{lonely}", "nobody"]}),
        no_organization(body={"userIds": []}),
        may_not_write(body={"userIds": []}),
    ),
    *of(
        "DELETE /organizations/{orgSlug}/members",
        ok(data(str, **REMOVED), body={"userIds": ["{userId}"]}),
        bad("userIds is required", body={}),
        missing("User not found", body={"userIds": ["nobody"]}),
        no_organization(body={"userIds": []}),
        may_not_write(body={"userIds": []}),
    ),
    *of(
        "DELETE /organizations/{orgSlug}/members/{userId}",
        ok(data(DONE)),
        bad_slug(),
        bad_user(),
        no_organization(),
        no_user(),
        missing("User is not a member of", names={"userId": "{lonely}"}),
        may_not_write(),
    ),
)

CONNECTIONS: tuple[Row, ...] = (
    *of(
        "GET /users/{userId}/oauth",
        ok(data([HIDDEN])),
        ok(data([SHOWN]), query={"showToken": "true"}, key=showing_tokens),
        bad("showToken", query={"showToken": "1"}),
        bad("This API key may not show tokens", 403, "keyMayNotShowTokens", query={"showToken": "true"}),
        no_user(),
    ),
    *of(
        "GET /users/{userId}/oauth/{provider}",
        ok(data(HIDDEN)),
        ok(data(HIDDEN), query={"showToken": "false"}),
        ok(data(SHOWN), query={"showToken": "true"}, key=showing_tokens),
        unknown_provider(),
        bad("This API key may not show tokens", 403, "keyMayNotShowTokens", query={"showToken": "true"}),
        missing("OAuth connection not found", names={"userId": "{lonely}"}),
        no_user(),
    ),
    *of(
        "POST /users/{userId}/oauth/{provider}",
        ok(data(HIDDEN), 201, body=TOKENS),
        ok(data(HIDDEN), 201, body={"accessToken": "planted", "scope": ["read"]}),
        bad("accessToken is required", body={"scope": ["read"]}),
        unknown_provider(body=TOKENS),
        no_user(body=TOKENS),
        bad(
            "The user belongs to other organizations too",
            403,
            "userInOtherOrganizations",
            body=TOKENS,
            key=bound,
        ),
        may_not_write(body=TOKENS),
    ),
    *of(
        "DELETE /users/{userId}/oauth/{provider}",
        ok(data(DONE)),
        unknown_provider(),
        missing("OAuth connection not found", names={"userId": "{lonely}"}),
        no_user(),
        may_not_write(),
    ),
    *of(
        "GET /users/{userId}/oauth/{provider}/token",
        ok(data({"accessToken": str}), key=showing_tokens),
        ok(data({"accessToken": str}), key=showing_tokens, setup=stale),
        unknown_provider(key=showing_tokens),
        bad(
            "",
            401,
            "authorizationInvalid",
            shape=PROVIDER_ERROR,
            key=showing_tokens,
            setup=stale_and_revoked,
        ),
        bad("This API key may not show tokens", 403, "keyMayNotShowTokens"),
        missing("OAuth connection not found", names={"userId": "{lonely}"}, key=showing_tokens),
        *token_endpoint_down(stale_and_down, key=showing_tokens),
    ),
    *of(
        "POST /users/{userId}/oauth/{provider}/authorize",
        ok(data(LINK), body={"scope": "read", "accessType": "online"}),
        ok(data(LINK), body={}),
        ok(data(LINK), body={"scope": "edit"}),
        ok(data(LINK), body={"scope": ["openid", "calendar"]}),
        bad("scope must be one of", body={"scope": "all"}),
        bad("redirectUrl is not an address", body={"redirectUrl": "https://evil.example.com/"}),
        bad(
            "Google is not configured",
            404,
            "providerNotConfigured",
            body={},
            key=without_google,
            providers=("google",),
        ),
        no_user(body={}),
        may_not_write(body={}),
    ),
    *of(
        "GET /users/{userId}/oauth/{provider}/link",
        ok(data(LINK), query={"scope": "free-busy"}),
        ok(data(LINK)),
        bad("accessType must be one of", query={"accessType": "sometimes"}),
        no_user(),
        may_not_write(),
    ),
    *of(
        "GET /users/{userId}/oauth/links",
        ok(data([{"provider": frozenset(PROVIDERS), **LINK}])),
        bad("scope must be one of", query={"scope": "all"}),
        no_user(),
        may_not_write(),
    ),
    *of(
        "POST /users/oauth/{provider}/verify",
        ok(data(DONE), body=CALLBACK | {"scope": ""}, setup=consented),
        bad(
            "state is unknown, expired or already used",
            400,
            "consentFailed",
            body=CALLBACK,
            setup=user_gone,
        ),
        bad("The code is no longer valid", 400, "consentFailed", body=CALLBACK, setup=invalid_code),
        bad("Another account was chosen", 400, "accountMismatch", body=CALLBACK, setup=other_account),
        bad(
            "Access to calendars was not granted",
            400,
            "calendarAccessNotGranted",
            body=CALLBACK,
            setup=no_calendar_access,
        ),
        bad("code is required", body={"state": "x"}),
        missing("User not found", body=CALLBACK, setup=user_left),
        *token_endpoint_down(token_down, body=CALLBACK),
        may_not_write(body={"code": "x", "state": "x"}),
    ),
    *of(
        "GET /oauth/{provider}/callback",
        ok(None, query=CALLBACK, setup=consented, **PAGE),
        ok(None, 302, query=CALLBACK, setup=allowing_returns, **PAGE),
        ok(None, 400, query={"error": "access_denied", "state": "{state}"}, setup=consented, **PAGE),
        ok(None, 400, query={"code": "x", "state": "x"}, **PAGE),
        ok(None, 403, query=CALLBACK, setup=user_shared, **PAGE),
        ok(None, 404, query=CALLBACK, setup=user_gone, **PAGE),
        ok(None, 429, query=CALLBACK, setup=lambda w: token_down(w, status=429, retry_after=LATER), **PAGE),
        ok(None, 502, query=CALLBACK, setup=lambda w: token_down(w, status=503), **PAGE),
        unknown_provider(),
    ),
)

ROWS = USERS + ORGANIZATIONS + CONNECTIONS
