"""Users, webhook endpoints and deliveries in one database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from store.security.crypto import Keyring
from store.sql.database import Database
from store.sql.models import Membership, Organization, User, WebhookDelivery
from store.sql.queries import deliveries, organizations, webhook_events, webhooks
from store.sql.queries.deliveries import AttemptResult, ClaimedDelivery
from store.sql.queries.webhook_events import WebhookEvent
from tests import people

SECOND = timedelta(seconds=1)


class WebhookWorld:
    """``reported`` has the sets of endpoints that the after-commit hook reported."""

    def __init__(self, database: Database, keyring: Keyring) -> None:
        self.reported: list[Any] = []
        url = database.url.render_as_string(hide_password=False)
        self.database = Database(url, on_events_recorded=lambda ids: self.reported.append(set(ids)))
        database.close()
        self.keyring = keyring
        self.secrets: dict[str, str] = {}

    def organization(self, slug: str) -> int:
        with self.database.writing() as session:
            row = Organization(slug=slug)
            session.add(row)
            session.flush()
            return row.id

    def connection(self, user: str = "ada", *joined: int, email: str | None = None) -> str:
        """Connect a Google account, in the place of one that is there; returns its id."""
        with self.database.writing() as session:
            row = session.scalars(select(User).where(User.custom_id == user)).one_or_none()
            if row is None:
                row = people.add_user(session, user)
                session.add_all(Membership(organization_id=each, user_id=row.id) for each in joined)
            return people.add_connection(session, self.keyring, row, email=email).id

    def join(self, user: str, organization: int) -> None:
        with self.database.writing() as session:
            organizations.add_members(session, organization, [self._user_id(session, user)])

    def leave(self, user: str, organization: int) -> None:
        with self.database.writing() as session:
            organizations.remove_members(session, organization, [self._user_id(session, user)])

    def endpoint(
        self, *, organization_id: int | None = None, events: Sequence[str] = tuple(WebhookEvent)
    ) -> str:
        with self.database.writing() as session:
            row, secret = webhooks.create(
                session,
                self.keyring,
                url="https://example.com/",
                events=events,
                organization_id=organization_id,
            )
        self.secrets[row.id] = secret
        return row.id

    def record(self, event: WebhookEvent, connection: str, calendar_id: str | None = None) -> None:
        with self.database.writing() as session:
            webhook_events.record(session, event, connection, calendar_id=calendar_id)

    def claim(self, endpoint: str, *, until: datetime | None = None) -> ClaimedDelivery | None:
        with self.database.writing() as session:
            return deliveries.claim(session, endpoint, until=until or datetime.now(UTC) + 60 * SECOND)

    def fail(self, claimed: ClaimedDelivery, *, status: int | None = 500, pause: float = 0.0) -> None:
        again_at = datetime.now(UTC) + pause * SECOND
        with self.database.writing() as session:
            deliveries.failed(session, claimed, AttemptResult(status, "it failed"), again_at=again_at)

    def succeed(self, claimed: ClaimedDelivery, *, most_attempts: int = 10) -> None:
        with self.database.writing() as session:
            deliveries.delivered(session, claimed, AttemptResult(204, None), most_attempts=most_attempts)

    def change(self, delivery: str, **values: Any) -> None:
        with self.database.writing() as session:
            session.execute(update(WebhookDelivery).where(WebhookDelivery.id == delivery).values(**values))

    def row(self, delivery: str) -> WebhookDelivery:
        with self.database.reading() as session:
            return session.get_one(WebhookDelivery, delivery)

    def waiting(self, endpoint: str | None = None) -> Sequence[WebhookDelivery]:
        """The pending deliveries, including the ones being sent."""
        query = select(WebhookDelivery).where(WebhookDelivery.next_attempt_at.is_not(None))
        if endpoint is not None:
            query = query.where(WebhookDelivery.endpoint_id == endpoint)
        with self.database.reading() as session:
            return session.scalars(query.order_by(WebhookDelivery.id)).all()

    @staticmethod
    def _user_id(session: Session, user: str) -> int:
        return session.scalars(select(User.id).where(User.custom_id == user)).one()

    def events(self) -> list[str]:
        return sorted(row.event for row in self.waiting())
