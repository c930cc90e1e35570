"""The export of a user, while others write."""

from __future__ import annotations

from sqlalchemy import event, select

from store.sql.models import Organization, User
from store.sql.queries import organizations, person_data
from tests import people


def test_a_user_who_leaves_an_organization_meanwhile_is_exported(fresh_database):
    with fresh_database.writing() as session:
        ada, own = people.add_user(session, "ada"), Organization(slug="own")
        session.add(own)
        session.flush()
        organizations.add_members(session, own.id, [ada.id])
        user_id, organization_id = ada.id, own.id
    left = []

    def leave(connection, cursor, statement, *_):
        if "FROM memberships" in statement and not left:
            left.append(statement)
            with fresh_database.writing() as session:
                organizations.remove_members(session, organization_id, [user_id])

    with fresh_database.reading() as session:
        user = session.scalars(select(User)).one()
        event.listen(session.get_bind(), "after_cursor_execute", leave)
        found = person_data.export(session, user)
    assert left
    assert [row["custom_id"] for row in found["users"]] == ["ada"]
    assert {row["organization"] for row in found["memberships"]} <= {"own"}
