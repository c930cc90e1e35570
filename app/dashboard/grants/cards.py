"""The grants of an organization as its page shows them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.dashboard import connection_badge
from providers import registry
from store.sql.queries import organization_grants
from store.sql.queries.organization_grants import GrantSummary


@dataclass(frozen=True, slots=True)
class GrantCard:
    """One provider on the page of an organization; ``grant`` is None when nothing is stored."""

    provider: str
    grant: GrantSummary | None
    members: int

    @property
    def title(self) -> str:
        """The provider's name."""
        return registry.title(self.provider)

    @property
    def badge(self) -> tuple[str, str]:
        """The CSS class and the word of the grant's badge."""
        if self.grant is None:
            return "", "no grant"
        return ("good", "active") if self.grant.alive else ("bad", "ended")

    @property
    def access(self) -> str | None:
        """The granted access, in words."""
        return None if self.grant is None else connection_badge.access_of(self.provider, self.grant.scope)

    @property
    def connections(self) -> str:
        """The number of delegated connections, in words."""
        return f"{self.members:,} delegated connection{'' if self.members == 1 else 's'}".replace(",", " ")

    @property
    def removal(self) -> str:
        """The question before the grant is removed: it says how many connections go with it."""
        with_it = {0: "No member is read by it.", 1: "1 delegated connection is deleted with it."}.get(
            self.members, f"{self.connections} are deleted with it."
        )
        return (
            f"Remove the grant of {self.title}? {with_it} Users and memberships stay. Nothing is revoked at "
            f"{self.title}: the administrator removes the authorization there."
        )


def cards(session: Session, organization_id: int) -> list[GrantCard]:
    """A card for each provider that knows grants of organizations."""
    stored = {each.provider: each for each in organization_grants.of_organization(session, organization_id)}
    members = organization_grants.delegated(session, organization_id)
    found = ((provider, stored.get(provider)) for provider in registry.with_grant())
    return [
        GrantCard(provider, grant, 0 if grant is None else members.get(grant.id, 0))
        for provider, grant in found
    ]
