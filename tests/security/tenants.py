"""Two organizations with all kinds of resources, and words that only one of them may read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from sqlalchemy import select
from werkzeug.test import TestResponse

from providers.sandbox.client import Sandbox, SandboxAccount
from store.security.crypto import digest as digest_of
from store.sql.models import ApiKey, Base, WebhookDelivery, now
from store.sql.queries import connection_rows, organizations, webhook_events, webhooks
from store.sql.queries.webhook_events import WebhookEvent
from store.stores import Stores
from tests.app.at_provider import AtProvider
from tests.conftest import Api, connect
from tests.security import keys
from tests.security.keys import Kind
from tests.security.matrix import APPLICATION, NINE, SERVICE_ACCOUNT, URL, Row

# The names that are random, and so do not hold the word of their tenant.
PRIVATE = ("eventId", "connectionId", "webhookId", "deliveryId", "holdId")
# Written now and then by any request.
UNASKED = {("api_keys", "last_used_at")}

# Calendars, and the directory.
GRANTED = {
    "google": (
        *("openid", "email", "calendar", "admin.directory.user.readonly"),
        "admin.directory.resource.calendar.readonly",
    ),
    "microsoft": ("Calendars.ReadWrite", "MailboxSettings.Read", "User.Read.All", "Place.Read.All"),
}


@dataclass
class Tenant:
    """An organization with two members, one of them delegated; ``names`` are its things, as in the matrix."""

    names: dict[str, str]
    accounts: list[SandboxAccount]
    words: frozenset[str]

    @property
    def slug(self) -> str:
        return self.names["orgSlug"]

    @property
    def user(self) -> str:
        return self.names["userId"]

    @property
    def delegated(self) -> str:
        """The member who is read by the grants of the organization."""
        return f"delegated-{self.user}"

    @property
    def spare_mailbox(self) -> str:
        """A mailbox that the grants can read."""
        return f"spare@{self.names['domain']}"


def settle(api: Api, sandbox: Sandbox, stores: Stores, word: str, provider: str = "google") -> Tenant:
    """Make one of which every identifier, name and text holds ``word``."""
    names = {
        "userId": f"user-{word}",
        "orgSlug": f"org-{word}",
        "calendarId": "primary",
        "metaId": f"meta-{word}",
        "provider": provider,
        "new": f"new-{word}",
    }
    _made(api.post("/organizations", {"slug": names["orgSlug"], "name": f"Name {word}"}), 200)
    _made(api.post("/users", {"id": names["userId"], "organizationSlugs": [names["orgSlug"]]}), 201)
    event = {"subject": f"Subject {word}", "description": f"Text {word}", **NINE}
    accounts = []
    for each, domain in (("google", "google.example"), ("microsoft", "contoso.example")):
        account = sandbox.account(each, f"{word}@{domain}", events=[event])
        connect(api, names["userId"], account)
        accounts.append(account)
    by_provider = {each.provider: each for each in accounts}
    names["connectionId"] = connection_of(api, names["userId"], by_provider[provider].email)
    (there,) = AtProvider(sandbox, by_provider[provider]).events()
    names["eventId"] = there["id"]
    unified = f"/users/{names['userId']}/calendar/events/meta"
    _made(api.post(unified, event | {"metaId": names["metaId"]}), 201)
    tenant = Tenant(names, accounts, frozenset())
    _listen(tenant, stores, word)
    _grant(api, sandbox, tenant, word)
    _hold(api, stores, tenant, word)
    _key(stores, tenant, word)
    # The first read of an account stores what the provider says about it.
    day = {"start": "2099-01-06", "end": "2099-01-07"}
    assert api.get(f"/organizations/{tenant.slug}/calendar/busy", **day).status_code == 200
    secrets = {tenant.names["privateKey"][30:60], tenant.names["clientSecret"]}
    tokens = {token for each in accounts for token in (each.access_token, each.refresh_token)}
    tenant.words = frozenset({word, *(names[each] for each in PRIVATE)} | tokens | secrets)
    return tenant


def _listen(tenant: Tenant, stores: Stores, word: str) -> None:
    """An endpoint with a delivery."""
    with stores.database.writing() as session:
        number = organizations.ids(session, [tenant.slug], organization_id=None)[tenant.slug]
        endpoint, _ = webhooks.create(
            session, stores.keyring, url=f"{URL}/{word}", events=EVENTS, organization_id=number
        )
        (connection, *_) = connection_rows.of_user(session, tenant.user, organization_id=None) or ()
        webhook_events.record(session, WebhookEvent.CALENDAR_CHANGED, connection.id, calendar_id="primary")
        told = session.scalars(
            select(WebhookDelivery).where(WebhookDelivery.endpoint_id == endpoint.id)
        ).one()
        told.next_attempt_at, told.delivered_at = None, now()
        tenant.names |= {"webhookId": endpoint.id, "deliveryId": told.id}


def _grant(api: Api, sandbox: Sandbox, tenant: Tenant, word: str) -> None:
    """Grants of a domain and of a tenant, and a member who is read by both.

    The domain has another mailbox without a connection. The credentials are among the names.
    """
    domain = f"{word}.example"
    event = {"subject": f"Subject of the domain {word}", **NINE}
    mailboxes = [{"email": f"{each}@{domain}", "events": [event]} for each in ("delegated", "spare")]
    google, microsoft = (
        sandbox.domain(each, domain, mailboxes, scope=GRANTED[each]) for each in ("google", "microsoft")
    )
    tenant.names |= {
        "domain": domain,
        "robot": google.service_account_key["client_email"],
        "privateKey": google.service_account_key["private_key"],
        "subject": google.subject,
        "tenant": microsoft.tenant,
        "clientId": microsoft.client_id,
        "clientSecret": microsoft.client_secret,
    }
    for body, provider in ((SERVICE_ACCOUNT, "google"), (APPLICATION, "microsoft")):
        _, _, more = Row("PUT /", body=body).request(tenant.names)
        grant = f"/organizations/{tenant.slug}/grants/{provider}"
        _made(api.put(grant, more["json"]), 200)
        member = {"userId": tenant.delegated, "email": f"delegated@{domain}"}
        _made(api.post(f"{grant}/members", {"members": [member]}), 200)


def _hold(api: Api, stores: Stores, tenant: Tenant, word: str) -> None:
    """A hold of the user, by a key of the organization."""
    own = Api(api.client, keys.create(stores, Kind(bound=True), tenant.slug))
    held = {"start": "2099-01-06T09:00:00Z", "end": "2099-01-06T10:00:00Z", "expiresIn": 3600}
    body = {"users": [tenant.user], "note": f"Note {word}", **held}
    tenant.names["holdId"] = _made(own.post("/holds", body), 201)["id"]


def _key(stores: Stores, tenant: Tenant, word: str) -> None:
    """An API key of the organization."""
    key = keys.create(stores, Kind(bound=True), tenant.slug, name=f"Key {word}")
    with stores.database.reading() as session:
        row = session.scalars(select(ApiKey).where(ApiKey.digest == digest_of(key))).one()
    tenant.names["keyId"] = row.public_id


def connection_of(api: Api, user: str, email: str) -> str:
    """The id of the user's connection with this address."""
    listed = _made(api.get(f"/users/{user}/connections"), 200)
    (found,) = [each["id"] for each in listed if each["email"] == email]
    return found


def consent(api: Api, tenant: Tenant) -> dict[str, str]:
    """The names of a consent that was given and not used yet."""
    path = f"/users/{tenant.user}/oauth/{tenant.names['provider']}/link"
    link = _made(api.get(path), 200)["link"]
    account = next(each for each in tenant.accounts if each.provider == tenant.names["provider"])
    hint = {"login_hint": account.email}
    landed = requests.get(link, params=hint, allow_redirects=False, timeout=10).headers["Location"]
    query = parse_qs(urlsplit(landed).query)
    return {name: query[name][0] for name in ("code", "state")}


def of_nobody(names: Mapping[str, str]) -> dict[str, str]:
    """Names of the same shape and length, of no existing resource."""
    kept = ("provider", "calendarId", "new")
    other = {name: value if name in kept else _other(value) for name, value in names.items()}
    # Ids of keys are counted, so the next one may be that of another tenant.
    return other | ({"keyId": "key_999999999"} if "keyId" in names else {})


def _other(value: str) -> str:
    last = "0" if value[-1] != "0" else "1"
    return value[:-1] + last


def _made(answer: TestResponse, status: int) -> Any:
    assert answer.status_code == status, answer.text
    assert answer.json is not None
    return answer.json["data"]


def digest(stores: Stores) -> dict[str, str]:
    """A hash of the content of each table."""
    found = {}
    with stores.database.reading() as session:
        for table in Base.metadata.sorted_tables:
            columns = [each for each in table.columns if (table.name, each.name) not in UNASKED]
            rows = sorted(repr(tuple(row)) for row in session.execute(select(*columns)))
            found[table.name] = hashlib.sha256("\n".join(rows).encode()).hexdigest()
    return found


def fields(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field of a JSON value with its path, such as ``data.0.oauthConnections.1.email``."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from fields(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from fields(each, f"{path}.{index}")
    else:
        yield path, value


def leaking_fields(answer: TestResponse, words: frozenset[str], said: str) -> list[str]:
    """The fields of an answer, and its headers, that have a foreign word which was not in the request."""
    secret = [word for word in words if word not in said]
    found = [
        f"{path}: {value}"
        for path, value in fields(answer.json)
        if any(word in str(value) for word in secret)
    ]
    told = f"{answer.status} {answer.headers}"
    return [*found, *(f"headers: {word}" for word in secret if word in told)]


def leaks(answer: TestResponse, words: frozenset[str], said: str) -> Iterator[str]:
    """The foreign words that an answer reveals and that were not in the request."""
    told = f"{answer.status} {answer.headers} {answer.get_data(as_text=True)}"
    return (word for word in words if word in told and word not in said)


# Deliveries of other events would be tried, and change, while a test compares the tables.
EVENTS = [WebhookEvent.CALENDAR_CHANGED, WebhookEvent.CONNECTION_EXPIRED, WebhookEvent.CONNECTION_RESTORED]
Settle = Callable[..., Tenant]
