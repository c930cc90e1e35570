"""A planted installation: 500 users in twelve organizations, with 40 known problems."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from sqlalchemy import insert
from sqlalchemy.orm import Session

from providers import registry
from providers.scopes import Level
from store.sql.models import (
    ApiKey,
    AuditRecord,
    Membership,
    OAuthConnection,
    Organization,
    OrganizationGrant,
    User,
    UserInvitation,
    WebhookDelivery,
    WebhookEndpoint,
    now,
)
from store.stores import Stores

USERS = 500
ORGANIZATIONS = ("acme", "bright", "cedar", "delta", "elm", "fjord", "grove", "harbor", "iris", "juniper")
QUIET_ORGANIZATIONS = ("kestrel", "linden")
FULL = {each: list(registry.scopes(each).level_scopes(Level.WRITE)) for each in registry.names()}
LIST_ONLY = {
    "google": ["openid", "https://www.googleapis.com/auth/calendar.calendarlist.readonly"],
    "microsoft": ["openid", "email", "offline_access", "User.Read"],
}
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

# The problems, by kind as the overview names it, and how a person calls each.
PROBLEMS: Mapping[str, frozenset[str]] = {
    "unbookable": frozenset(
        {"ada.lovelace", "alan.turing", "barbara.liskov", "donald.knuth", "edsger.dijkstra", "fran.allen"}
        | {"grace.hopper", "member.of-juniper"}
    ),
    "no-calendars": frozenset(
        {"hedy.lamarr", "ida.rhodes", "jean.bartik", "john.backus", "katherine.johnson"}
    ),
    "expiring": frozenset({"ken.thompson", "leslie.lamport", "lynn.conway", "margaret.hamilton"}),
    "unconnected": frozenset(
        {"mary.jackson", "niklaus.wirth", "radia.perlman", "shafi.goldwasser", "sophie.wilson"}
        | {"tony.hoare", "vint.cerf"}
    ),
    "keys": frozenset({"booking page", "nightly export", "mobile app", "partner portal"}),
    "webhooks": frozenset(
        f"https://hooks.example.com/{name}" for name in ("billing", "crm", "gone", "rooms-of-the-whole-house")
    ),
    "grants": frozenset({"acme", "bright", "cedar", "delta", "elm", "juniper"}),
    "registrations": frozenset({"Google", "Microsoft"}),
}
USER_KINDS = ("unbookable", "no-calendars", "expiring", "unconnected")
# Of those who never connected: their invitations have expired.
UNANSWERED = ("mary.jackson", "niklaus.wirth", "radia.perlman")
# Member of an organization whose grant has ended.
DELEGATED = "member.of-juniper"
ENDED = ("grant revoked by the user", "the account was deleted", "the password was changed")


def plant(stores: Stores, *, users: int = USERS) -> None:
    """Fill an empty database. Fewer ``users`` are fewer healthy ones; the problems are the same."""
    with stores.database.writing() as session:
        organizations = _organizations(session)
        _grants(session, organizations)
        numbers = _users(session, users)
        _memberships(session, organizations, numbers)
        _connections(session, numbers)
        _invitations(session, numbers)
        _keys(session, organizations)
        _webhooks(session, organizations, numbers)
        _audit_records(session, list(numbers))
    for provider, client in _clients(stores).items():
        stores.registration_checks.note(provider, client, accepted=False, sentence="invalid_client")


def forget(stores: Stores) -> None:
    """Forget what is in Redis, which tests share."""
    for provider in _clients(stores):
        stores.registration_checks.forget(provider)


def _clients(stores: Stores) -> dict[str, str]:
    providers = stores.settings.providers
    return {"google": providers.google_client_id, "microsoft": providers.microsoft_client_id}


def _organizations(session: Session) -> dict[str, int]:
    slugs = (*ORGANIZATIONS, *QUIET_ORGANIZATIONS)
    session.execute(insert(Organization), [{"slug": slug, "name": f"{slug.title()} Ltd"} for slug in slugs])
    found = session.execute(Organization.__table__.select())
    return {row.slug: row.id for row in found}


def _grants(session: Session, organizations: Mapping[str, int]) -> None:
    """The grants with a problem have ended; two others are alive."""
    for number, slug in enumerate((*ORGANIZATIONS[:5], "juniper", "iris", "kestrel")):
        ended = slug in PROBLEMS["grants"]
        session.add(
            OrganizationGrant(
                id=f"{number:032x}",
                organization_id=organizations[slug],
                provider=("google", "microsoft")[number % 2],
                subject=f"admin@{slug}.example",
                client_email=f"almanac@{slug}.iam.gserviceaccount.com" if number % 2 == 0 else None,
                tenant=None if number % 2 == 0 else f"{slug}.example",
                sealed_secret=b"x",
                scope=FULL[("google", "microsoft")[number % 2]],
                alive=not ended,
                ended_at=now() - number * DAY if ended else None,
                ended_because="unauthorized_client" if ended else None,
            )
        )
    session.flush()


def _users(session: Session, users: int) -> dict[str, int]:
    troubled = sorted(set().union(*(PROBLEMS[kind] for kind in USER_KINDS)))
    names = [*troubled, *(f"employee-{number:04}" for number in range(users - len(troubled)))]
    rows = [
        {"custom_id": name, "created_at": now() - number * HOUR} for number, name in enumerate(sorted(names))
    ]
    session.execute(insert(User), rows)
    return {row.custom_id: row.id for row in session.execute(User.__table__.select())}


def _memberships(session: Session, organizations: Mapping[str, int], users: Mapping[str, int]) -> None:
    slugs = ORGANIZATIONS[:-1]
    rows = [
        {"organization_id": organizations[slugs[number % len(slugs)]], "user_id": user}
        for number, user in enumerate(users.values())
    ]
    rows += [{"organization_id": organizations["kestrel"], "user_id": user} for user in users.values()]
    rows.append({"organization_id": organizations["juniper"], "user_id": users[DELEGATED]})
    session.execute(insert(Membership), rows)


def _connections(session: Session, users: Mapping[str, int]) -> None:
    rows = []
    for number, (name, user) in enumerate(users.items()):
        if name in PROBLEMS["unconnected"]:
            continue
        provider = "microsoft" if name == DELEGATED else ("google", "microsoft")[number % 2]
        ended = name in PROBLEMS["unbookable"] and name != DELEGATED
        grant = 5 if name == DELEGATED else 6 if number % 50 == 48 and name.startswith("employee-") else None
        expiring = name in PROBLEMS["expiring"]
        rows.append(
            {
                "id": f"{number:032x}",
                "user_id": user,
                "provider": provider,
                "email": f"{name}@example.com",
                "sealed_access_token": b"x" * 200,
                # A healthy token ends within the hour too, but can be refreshed.
                "sealed_refresh_token": None if expiring else b"x" * 200,
                "expires_at": now() + (2 * DAY if expiring else HOUR),
                "scope": LIST_ONLY[provider] if name in PROBLEMS["no-calendars"] else FULL[provider],
                "alive": not ended,
                "ended_at": now() - number * HOUR if ended else None,
                "ended_because": ENDED[number % len(ENDED)] if ended else None,
                "grant_id": None if grant is None else f"{grant:032x}",
            }
        )
    session.execute(insert(OAuthConnection), rows)


def _invitations(session: Session, users: Mapping[str, int]) -> None:
    """Those without an answer have expired; of users without problems there is one in each other state."""
    fine = [user for name, user in users.items() if name.startswith("employee-")]
    rows = [{"user_id": users[name], "expires_at": now() - 3 * DAY} for name in UNANSWERED]
    rows += [
        {"user_id": user, "expires_at": now() + 3 * DAY, "connected_at": now() if number % 5 else None}
        for number, user in enumerate(fine[:60])
    ]
    rows = [
        {
            "id": f"{number:032x}",
            "digest": f"{number:064x}",
            "scope": Level.WRITE,
            "created_by": "administrator ada",
            "created_at": now() - 8 * DAY + number * HOUR / 60,
            "connected_at": None,
            **row,
        }
        for number, row in enumerate(rows)
    ]
    session.execute(insert(UserInvitation), rows)


def _keys(session: Session, organizations: Mapping[str, int]) -> None:
    """Those with a problem expire within two weeks; others later or never, or are over."""
    ends = {name: now() + (2 + 3 * number) * DAY for number, name in enumerate(sorted(PROBLEMS["keys"]))}
    fine = {f"service {number:02}": (None, now() + 90 * DAY)[number % 2] for number in range(30)}
    over = {f"old service {number}": now() - number * DAY for number in range(1, 4)}
    rows = [
        {
            "name": name,
            "visible": f"alm_{number:08x}",
            "digest": f"{number:064x}",
            "organization_id": organizations["acme"] if number % 3 == 0 else None,
            "expires_at": expires_at,
            "revoked_at": None,
        }
        for number, (name, expires_at) in enumerate({**ends, **fine, **over}.items())
    ]
    # Revoked before it could expire.
    revoked = {
        "name": "mobile app of last year",
        "visible": "alm_ffffffff",
        "digest": "f" * 64,
        "organization_id": None,
    }
    rows.append({**revoked, "expires_at": now() + DAY, "revoked_at": now() - DAY})
    session.execute(insert(ApiKey), rows)


def _webhooks(session: Session, organizations: Mapping[str, int], users: Mapping[str, int]) -> None:
    """Three fail and one is gone; of the others, some failed once, and one fails but is paused."""
    failing = sorted(PROBLEMS["webhooks"])
    fine = [f"https://hooks.example.com/service-{number}" for number in range(20)]
    paused = "https://hooks.example.com/paused"
    deliveries = []
    for number, url in enumerate((*failing, paused, *fine)):
        gone = url.endswith("/gone")
        endpoint = WebhookEndpoint(
            id=f"wh_{number:024x}",
            url=url,
            organization_id=organizations["acme"] if number % 4 == 0 else None,
            events=["calendar.changed", "connection.expired"],
            sealed_secret=b"x",
            disabled_at=now() - DAY if gone else None,
            paused_at=now() - DAY if url == paused else None,
        )
        session.add(endpoint)
        fails = url in failing or url == paused
        for age in range(40):
            failed = fails if age < 3 else age % 13 == 5
            deliveries.append(
                {
                    "id": f"msg_{number:04x}{1000 - age:032x}",
                    "endpoint_id": endpoint.id,
                    "user_id": users[f"employee-{age:04}"],
                    "event": "calendar.changed",
                    "payload": {"type": "calendar.changed"},
                    "attempts": 1,
                    "created_at": now() - age * HOUR,
                    "first_attempt_at": now() - age * HOUR,
                    "last_attempt_at": now() - age * HOUR,
                    "next_attempt_at": None,
                    "last_status": 500 if failed else 204,
                    "last_error": "answered 500" if failed else None,
                    "last_body": "<h1>Internal Server Error</h1>" if failed else "",
                    "delivered_at": None if failed else now() - age * HOUR,
                }
            )
    session.flush()
    session.execute(insert(WebhookDelivery), deliveries)


def _audit_records(session: Session, names: list[str]) -> None:
    rows = [
        {
            "created_at": now() - number * HOUR / 10,
            "actor": ("administrator ada", "alm_00000001", "operator bob")[number % 3],
            "action": ("createUser", "changeOrganization", "inviteUser")[number % 3],
            "subject": names[number % len(names)],
            "changes": {"name": ["Old", "New"]} if number % 3 == 1 else None,
        }
        for number in range(2000)
    ]
    session.execute(insert(AuditRecord), rows)


assert sum(map(len, PROBLEMS.values())) == 40
