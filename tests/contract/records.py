"""The rows of users, organizations, members and connections."""

from __future__ import annotations

from dataclasses import replace

from store.config.settings import Settings
from tests.conftest import stores_of
from tests.contract.rows import (
    LATER,
    OTHER_ETAG,
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
from tests.contract.shapes import (
    CONNECTION,
    DONE,
    LISTED_USER,
    ORGANIZATION,
    TIME,
    USER,
    USER_CONNECTION,
    WINDOW,
    data,
    nullable,
)
from tests.contract.world import World

NEXT = {"nextCursor": nullable(str)}
NO_CONNECTIONS = {name: shape for name, shape in USER.items() if name != "oauthConnections"}
LISTED_NO_CONNECTIONS = {name: shape for name, shape in LISTED_USER.items() if name != "oauthConnections"}
EXPORTED = (
    *("users", "memberships", "availabilityProfiles", "oauthConnections", "channels", "holds", "heldTimes"),
    *("heldNames", "webhookDeliveries", "userInvitations", "auditRecords"),
)
# Other tests of the installation may have set some.
_QUOTAS = ("requestsPerMinute?", "waitingReads?", "waitingWrites?", "heldUsers?", "webhookTurns?")
LISTED_ORGANIZATION = ORGANIZATION | {"quotas?": dict.fromkeys(_QUOTAS, int)}
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

OPEN = {"days": ["monday", "tuesday"], "start": "09:00", "end": "17:00"}
FOREIGN = {"connectionId": "5b0a3c9d1e7f4a2b8c6d0e1f2a3b4c5d", "calendarId": "primary"}
STATED = {
    "timeZone": "Asia/Tokyo",
    "schedules": [OPEN],
    "overrides": [{"date": "2026-12-24", "windows": []}],
    "paddingBefore": 5,
    "minimumNotice": 60,
    "holidays": {"country": "JP"},
}
SHARED_USER = "The user belongs to other organizations too", 403, "userInOtherOrganizations"


PROFILE = {
    "timeZone": nullable(str),
    "schedules": nullable([WINDOW]),
    "overrides": nullable([{"date": str, "windows": list}]),
    "calendars": None,
    "paddingBefore": nullable(int),
    "paddingAfter": nullable(int),
    "minimumNotice": nullable(int),
    "holidays": nullable({"country": str}),
}


def profiled(world: World) -> None:
    """Something counts for the user."""
    assert world.api.put(f"/users/{world.names['userId']}/availability", STATED).status_code == 200


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
        ok(data(USER), 201, body={"id": "{new}", "organizations": [], "orgSlug": None}),
        bad("id must match", body={"id": "a"}),
        bad("id is required", body={}),
        *(
            bad(f"{name} is no field of new users", body={"id": "{new}", name: "{orgSlug}"})
            for name in ("organization", "organizations", "organizationSlug", "orgSlug")
        ),
        missing("Organization not found", body={"id": "{new}", "organizationSlugs": ["nowhere"]}),
        bad("User already exists", 409, "userExists", body={"id": "{userId}"}),
        may_not_write(body={"id": "{new}"}),
    ),
    *of(
        "GET /users/{userId}/availability",
        ok(data(PROFILE), setup=profiled),
        bad_user(),
        no_user(),
    ),
    *of(
        "PUT /users/{userId}/availability",
        ok(data(PROFILE), body=STATED),
        # Ignored, each of these would leave the person bookable at all hours.
        *(
            bad(f"{name} is no field of an availability", body={name: [OPEN]})
            for name in ("schedule", "workingHours", "timezone")
        ),
        bad("schedules[0].days[0] must be one of", body={"schedules": [OPEN | {"days": ["noday"]}]}),
        bad("holidays.country must be the ISO 3166 code", body={"holidays": {"country": "XX"}}),
        bad("calendars[0].connectionId must be", body={"calendars": [FOREIGN]}),
        bad("The availability", 412, "availabilityChanged", body=STATED, headers=OTHER_ETAG),
        bad_user(body=STATED),
        no_user(body=STATED),
        bad(*SHARED_USER, body=STATED, key=bound),
        may_not_write(body=STATED),
    ),
    *of(
        "PATCH /users/{userId}/availability",
        ok(data(PROFILE), body={"paddingBefore": 10}, setup=profiled),
        bad("minimumNotice must be between", body={"minimumNotice": -1}),
        bad("The availability", 412, "availabilityChanged", body=STATED, headers=OTHER_ETAG),
        bad_user(body=STATED),
        no_user(body=STATED),
        bad(*SHARED_USER, body=STATED, key=bound),
        may_not_write(body=STATED),
    ),
    *of(
        "DELETE /users/{userId}/availability",
        ok(data(DONE), setup=profiled),
        bad("The availability", 412, "availabilityChanged", headers=OTHER_ETAG),
        bad("If-Match must be one etag", headers={"If-Match": "1"}),
        bad_user(),
        no_user(),
        bad(*SHARED_USER, key=bound),
        may_not_write(),
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
        "GET /users/{userId}/export",
        ok(data(dict.fromkeys(EXPORTED, list))),
        bad("An export", 403, "keyBoundToOrganization", key=bound),
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
        "GET /organizations",
        ok(data([LISTED_ORGANIZATION])),
        bad("cursor", query={"cursor": "none", "limit": "1"}),
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
        ok(
            data(ORGANIZATION | {"quotas": {"requestsPerMinute": int, "heldUsers": int}}),
            body={"quotas": {"requestsPerMinute": 600, "heldUsers": 2000, "waitingReads": None}},
        ),
        bad("quotas.heldUsers must be between 1 and", body={"quotas": {"heldUsers": 0}}),
        bad("quotas.held_users is no quota", body={"quotas": {"held_users": 2000}}),
        bad(
            "Changing the quotas of an organization needs",
            403,
            "keyBoundToOrganization",
            body={"quotas": {"heldUsers": 2000}},
            key=bound,
        ),
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


def named_connection(world: World) -> None:
    (first, *_) = world.api.get(f"/users/{world.names['userId']}/connections").json["data"]
    world.names["connectionId"] = first["id"]


def failing_connection(world: World) -> None:
    """A connection whose last read has failed."""
    world.inject_fault(status=404)
    span = {"start": "2026-12-03T08:00:00Z", "end": "2026-12-03T18:00:00Z"}
    world.api.get(f"/users/{world.names['userId']}/scheduling", {"Cache-Control": "no-cache"}, **span)
    named_connection(world)


SECOND = {**TOKENS, "provider": "google", "email": "ada.lovelace@example.com", "label": "Family"}

# No server listens there.
UNREACHABLE = {
    "provider": "caldav",
    "url": "https://127.0.0.1:9/",
    "username": "ada",
    "password": "planted",
}

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
        "GET /users/{userId}/connections",
        ok(data([USER_CONNECTION])),
        no_user(),
    ),
    *of(
        "POST /users/{userId}/connections",
        ok(data(USER_CONNECTION), 201, body=SECOND),
        ok(data(USER_CONNECTION), 200, body={**SECOND, "email": "{own}"}),
        bad("accessToken is required", body={"provider": "google", "scope": ["read"]}),
        bad("provider must be one of", body=TOKENS | {"provider": "yahoo"}),
        bad("", 502, "providerError", shape=PROVIDER_ERROR, body=UNREACHABLE),
        no_user(body=SECOND),
        bad(
            "The user belongs to other organizations too",
            403,
            "userInOtherOrganizations",
            body=SECOND,
            key=bound,
        ),
        may_not_write(body=SECOND),
    ),
    *of(
        "GET /users/{userId}/connections/{connectionId}",
        ok(data(USER_CONNECTION), setup=named_connection),
        ok(data(USER_CONNECTION), setup=failing_connection),
        missing("OAuth connection not found"),
        missing("OAuth connection not found", names={"userId": "{lonely}"}, setup=named_connection),
        no_user(),
    ),
    *of(
        "PATCH /users/{userId}/connections/{connectionId}",
        ok(data(USER_CONNECTION), body={"label": "Work"}, setup=named_connection),
        ok(data(USER_CONNECTION), body={"default": True}, setup=named_connection),
        bad("default must be true or false", body={"default": 1}, setup=named_connection),
        bad("default cannot be false", body={"default": False}, setup=named_connection),
        missing("OAuth connection not found", body={"label": "Work"}),
        no_user(body={}),
        bad(
            "The user belongs to other organizations too",
            403,
            "userInOtherOrganizations",
            body={"label": "Work"},
            key=bound,
        ),
        may_not_write(body={}),
    ),
    *of(
        "DELETE /users/{userId}/connections/{connectionId}",
        ok(data(DONE), setup=named_connection),
        bad("revoke must be true or false", query={"revoke": "maybe"}),
        missing("OAuth connection not found"),
        no_user(),
        may_not_write(),
    ),
    *of(
        "POST /users/{userId}/oauth/{provider}/authorize",
        ok(data(LINK), body={"account": "add"}),
        missing("OAuth connection not found", body={"account": f"{0:032x}"}),
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
        missing("OAuth connection not found", query={"account": f"{0:032x}"}),
        no_user(),
        may_not_write(),
    ),
    *of(
        "GET /users/{userId}/oauth/links",
        ok(data([{"provider": frozenset(PROVIDERS), **LINK}])),
        bad("scope must be one of", query={"scope": "all"}),
        missing("OAuth connection not found", query={"account": f"{0:032x}"}),
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
