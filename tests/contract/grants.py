"""The rows of grants of organizations, of imports, and of delegated connections."""

from __future__ import annotations

from functools import partial

from providers.sandbox.client import SandboxDomain
from tests.conftest import stores_of
from tests.contract.rows import (
    LATER,
    THROTTLED,
    Row,
    bad,
    bad_slug,
    bound,
    may_not_write,
    missing,
    no_organization,
    of,
    ok,
    showing_tokens,
    token_endpoint_down,
    unknown_provider,
)
from tests.contract.shapes import CONNECTION, DONE, TIME, data
from tests.contract.world import World

GRANT = {"scope": [str], "alive": bool, "createdAt": TIME}
GOOGLE_GRANT = GRANT | {
    "provider": frozenset({"google"}),
    "type": frozenset({"serviceAccount"}),
    "email": str,
    "serviceAccount": str,
}
MICROSOFT_GRANT = GRANT | {
    "provider": frozenset({"microsoft"}),
    "type": frozenset({"application"}),
    "tenant": str,
    "clientId?": str,
}
EITHER_GRANT = GRANT | {
    "provider": frozenset({"google", "microsoft"}),
    "type": frozenset({"serviceAccount", "application"}),
    "email?": str,
    "serviceAccount?": str,
    "tenant?": str,
    "clientId?": str,
}
DELEGATED_CONNECTION = CONNECTION | {
    "type": frozenset({"delegated"}),
    "expiresAt": None,
    "accessToken": None,
    "refreshToken": None,
}
KEY_FILE = {"type": "service_account", "client_email": "{robot}", "private_key": "{private_key}"}
SERVICE_ACCOUNT = {"serviceAccountKey": KEY_FILE, "subject": "{subject}"}
APPLICATION = {"tenant": "{tenant}", "clientId": "{clientId}", "clientSecret": "{clientSecret}"}
GOOGLE_DIRECTORY = (
    "openid",
    "email",
    "calendar",
    "admin.directory.user.readonly",
    "admin.directory.resource.calendar.readonly",
)
MICROSOFT_DIRECTORY = ("Calendars.ReadWrite", "MailboxSettings.Read", "User.Read.All", "Place.Read.All")
ENTRY = {
    "kind": frozenset({"user", "room"}),
    "id": str,
    "email": str,
    "name": str,
    "building?": str,
    "capacity?": int,
    "userId?": str,
}
UNLISTED = {"data": None, "error": str, "code": str, "reason": str}
IMPORTED = {"created": [str], "changed": [str], "unchanged": [str]}
MEMBER = {"userId": "{new}", "email": "nova@acme.example"}
IMPORT = {"members": [MEMBER, {"userId": "{userId}", "email": "ada@acme.example"}]}
DELEGATED = {"type": "delegated", "email": "ada@acme.example", "organization": "{orgSlug}"}


def domains(world: World) -> None:
    """A Google domain and a Microsoft tenant whose administrators have authorized an application."""
    google = world.sandbox.domain("google", "acme.example", ["ada@acme.example"])
    microsoft = world.sandbox.domain("microsoft", "acme.example", ["ada@acme.example"])
    named(world, google, microsoft)


def named(world: World, google: SandboxDomain, microsoft: SandboxDomain) -> None:
    world.names |= {
        "robot": google.service_account_key["client_email"],
        "private_key": google.service_account_key["private_key"],
        "subject": google.subject,
        "tenant": microsoft.tenant,
        "clientId": microsoft.client_id,
        "clientSecret": microsoft.client_secret,
    }


def granted(world: World) -> None:
    """The organization has a grant with the provider of the row."""
    domains(world)
    store(world)


def store(world: World) -> None:
    body = SERVICE_ACCOUNT if world.provider == "google" else APPLICATION
    path = f"/organizations/{world.names['orgSlug']}/grants/{world.provider}"
    answer = world.api.put(path, world.filled(body))
    assert answer.status_code == 200, answer.text


def delegated(world: World) -> None:
    """The user's connection is delegated."""
    granted(world)
    path = f"/users/{world.names['userId']}/oauth/{world.provider}"
    assert world.api.post(path, world.filled(DELEGATED)).status_code == 201


def listing(world: World) -> None:
    """As ``granted``, and the grant may list people and rooms; the user is a member of its directory."""
    rooms = {"email": "aurora@acme.example", "name": "Aurora", "building": "HQ", "capacity": 8}
    google = world.sandbox.domain(
        "google", "acme.example", ["ada@acme.example"], rooms=[rooms], scope=GOOGLE_DIRECTORY
    )
    microsoft = world.sandbox.domain(
        "microsoft", "acme.example", ["ada@acme.example"], rooms=[rooms], scope=MICROSOFT_DIRECTORY
    )
    named(world, google, microsoft)
    store(world)
    path = f"/users/{world.names['userId']}/oauth/{world.provider}"
    assert world.api.post(path, world.filled(DELEGATED)).status_code == 201


def listing_down(world: World) -> None:
    """As ``listing``, and the provider does not list people."""
    listing(world)
    world.sandbox.fault(operation=f"{world.provider}.users.list", status=503, retry_after=LATER)


def listing_throttled(world: World) -> None:
    """As ``listing``, and the provider limits the rate."""
    listing(world)
    world.sandbox.fault(operation=f"{world.provider}.users.list", status=429, retry_after=LATER)


def own_registration(world: World) -> None:
    """A tenant that has consented to the registration of the installation."""
    domains(world)
    there = stores_of(world.api.client.application).settings.providers
    ours = {"clientId": there.microsoft_client_id, "clientSecret": there.microsoft_client_secret}
    world.names["tenant"] = world.sandbox.domain("microsoft", "acme.example", **ours).tenant


def withdrawn(world: World) -> None:
    """The administrators have withdrawn what they authorized."""
    domains(world)
    world.sandbox.withdraw("acme.example")


def token_down(provider: str, world: World, **fault: object) -> None:
    domains(world)
    world.sandbox.fault(operation=f"{provider}.token", **fault)  # type: ignore[arg-type]


def checked(provider: str, body: object) -> list[Row]:
    """The answers of a check that the provider refuses or does not answer."""
    return [
        bad("", 400, "grantRefused", body=body, setup=withdrawn),
        *token_endpoint_down(partial(token_down, provider), body=body),
        no_organization(body=body, setup=domains),
        may_not_write(body=body, setup=domains),
    ]


ROWS: tuple[Row, ...] = (
    *of(
        "GET /organizations/{orgSlug}/grants",
        ok(data([GOOGLE_GRANT]), setup=granted),
        ok(data([])),
        bad_slug(),
        no_organization(),
    ),
    *of(
        "PUT /organizations/{orgSlug}/grants/google",
        ok(data(GOOGLE_GRANT), body=SERVICE_ACCOUNT, setup=domains),
        ok(data(GOOGLE_GRANT), body=SERVICE_ACCOUNT | {"scope": "free-busy"}, setup=domains),
        bad("subject is required", body={"serviceAccountKey": KEY_FILE}, setup=domains),
        bad(
            "serviceAccountKey.type is not service_account",
            body=SERVICE_ACCOUNT | {"serviceAccountKey": {"type": "authorized_user"}},
            setup=domains,
        ),
        *checked("google", SERVICE_ACCOUNT),
    ),
    *of(
        "PUT /organizations/{orgSlug}/grants/microsoft",
        ok(data(MICROSOFT_GRANT), body=APPLICATION, setup=domains),
        ok(data(MICROSOFT_GRANT), body={"tenant": "{tenant}"}, setup=own_registration),
        *(
            bad("scope must not be given for Microsoft", body=APPLICATION | {"scope": scope}, setup=domains)
            for scope in ("read", ["Calendars.Read"])
        ),
        bad("tenant must be one tenant", body=APPLICATION | {"tenant": "common"}, setup=domains),
        bad(
            "A grant without clientId and clientSecret needs",
            403,
            "keyBoundToOrganization",
            body={"tenant": "{tenant}"},
            setup=domains,
            key=bound,
        ),
        *checked("microsoft", APPLICATION),
    ),
    *of(
        "GET /organizations/{orgSlug}/grants/{provider}",
        ok(data(EITHER_GRANT), setup=granted),
        unknown_provider(),
        no_organization(),
        missing("There is no grant"),
    ),
    *of(
        "DELETE /organizations/{orgSlug}/grants/{provider}",
        ok(data(DONE), setup=granted),
        unknown_provider(),
        no_organization(),
        missing("There is no grant"),
        may_not_write(),
    ),
    *of(
        "POST /organizations/{orgSlug}/grants/{provider}/members",
        ok(data(IMPORTED), body=IMPORT, setup=granted),
        bad("members[1].userId is the user of members[0]", body={"members": [MEMBER, MEMBER]}, setup=granted),
        bad("members is required", body={}, setup=granted),
        unknown_provider(body={"members": []}),
        no_organization(body={"members": []}),
        missing("There is no grant", body=IMPORT),
        bad(
            "members[1].userId: The user belongs to other organizations too",
            403,
            "userInOtherOrganizations",
            shape={"data": None, "error": str, "code": str, "param": str},
            body=IMPORT,
            setup=granted,
            key=bound,
        ),
        may_not_write(body={"members": []}),
    ),
    *of(
        "GET /organizations/{orgSlug}/grants/{provider}/directory",
        ok(data([ENTRY]), setup=listing),
        ok(data([ENTRY]), setup=listing, query={"kind": "room", "q": "AUR"}),
        ok(data([]), setup=listing, query={"q": "nobody"}),
        bad("kind must be one of", query={"kind": "car"}),
        unknown_provider(),
        no_organization(),
        missing("There is no grant"),
        bad("", 403, "insufficientScopes", shape=UNLISTED, setup=granted),
        bad("", 502, "providerError", shape=UNLISTED, setup=listing_down),
        bad("", 429, "rateLimited", shape=THROTTLED | UNLISTED, setup=listing_throttled),
    ),
    *of(
        "POST /users/{userId}/oauth/{provider}",
        ok(data(DELEGATED_CONNECTION), 201, body=DELEGATED, setup=granted),
        bad("organization is required", body={"type": "delegated", "email": "ada@acme.example"}),
        missing("There is no grant", body=DELEGATED),
        missing("User is not a member of", body=DELEGATED, setup=granted, names={"userId": "{lonely}"}),
        missing("Organization not found", body=DELEGATED | {"organization": "nowhere"}),
    ),
    *of(
        "GET /users/{userId}/oauth/{provider}/token",
        bad(
            "A delegated connection has no tokens",
            409,
            "connectionDelegated",
            setup=delegated,
            key=showing_tokens,
        ),
    ),
)
