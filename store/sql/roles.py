"""The roles of people who sign in to the dashboard."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The rights of a person; each role may do everything that the roles before it may.

    A viewer changes only their own account. An operator changes everything except API keys,
    registrations with providers, and the people who sign in. An administrator changes everything.
    """

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"

    def includes(self, other: Role) -> bool:
        """Whether this role may do everything that the other one may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(other)

    def and_above(self) -> list[Role]:
        """The roles that include this one."""
        return [each for each in Role if each.includes(self)]
