"""Pages of lists, forwards and backwards, in every order of every list."""

from __future__ import annotations

from datetime import timedelta

import pytest

from store.sql.keyset import Position
from store.sql.models import ApiKey, Membership, Organization, User, now
from store.sql.queries import api_keys, organizations, users

NUMBER = 11
LISTS = [
    *((users.search, users.ORDERS, name) for name in users.ORDERS),
    *((organizations.search, organizations.ORDERS, name) for name in organizations.ORDERS),
    *((api_keys.page, api_keys.ORDERS, name) for name in api_keys.ORDERS),
]


@pytest.fixture
def content(fresh_database):
    """Rows with equal values among different ones, and values that are missing."""
    start = now()
    with fresh_database.writing() as session:
        people = [
            User(custom_id=f"u{number:02}", created_at=start + timedelta(seconds=number % 3))
            for number in range(NUMBER)
        ]
        session.add_all(people)
        session.flush()
        for number in range(NUMBER):
            name = (None, "b", "a", "B")[number % 4]
            row = Organization(slug=f"o{number:02}", name=name, created_at=start + timedelta(days=number % 2))
            session.add(row)
            session.flush()
            session.add_all(
                Membership(organization_id=row.id, user_id=each.id) for each in people[: number % 3]
            )
            session.add(
                ApiKey(
                    name=f"key {number % 2}",
                    visible="v",
                    digest=str(number),
                    expires_at=start + timedelta(days=1 + number % 4) if number % 2 else None,
                    last_used_at=start - timedelta(days=number % 3) if number % 3 else None,
                )
            )
    return fresh_database


@pytest.mark.parametrize(
    ("search", "orders", "name"), LISTS, ids=lambda each: each if isinstance(each, str) else ""
)
@pytest.mark.parametrize("descending", [False, True])
def test_pages_follow_each_other_in_both_directions(content, search, orders, name, descending):
    order = orders[name]
    more = {"in_force": True} if search is api_keys.page else {}
    more |= {"order": order if search is users.search else name, "descending": descending}

    def at(row, *, backwards=False):
        # As text, which links have.
        key = order.parse_key(str(order.key_of(row)))
        if order.value_of is None:
            return Position(key, None, backwards)
        value = order.value_of(row)
        text = value.isoformat() if hasattr(value, "isoformat") else str(value)
        return Position(key, order.parse_value(text), backwards)

    def keys(rows):
        return [order.key_of(each) for each in rows]

    with content.reading() as session:
        whole = search(session, **more)
        assert (len(whole.rows), whole.offset, whole.total) == (NUMBER, 0, NUMBER)
        expected = sorted(
            whole.rows,
            key=lambda row: (order.value_of(row) if order.value_of else 0, order.key_of(row)),
            reverse=descending,
        )
        if name != "name":
            # Databases differ in how they order upper and lower case.
            assert keys(whole.rows) == keys(expected)

        pages, position = [], None
        while (page := search(session, position=position, limit=4, **more)).rows:
            assert (page.offset, page.total) == (4 * len(pages), NUMBER)
            pages.append(keys(page.rows))
            position = at(page.rows[-1])
        assert [each for page in pages for each in page] == keys(whole.rows)
        assert (page.rows, page.offset, page.total) == ([], NUMBER, NUMBER)

        back, position = [], at(whole.rows[-1], backwards=True)
        while (page := search(session, position=position, limit=4, **more)).rows:
            assert page.offset == whole.rows.index(page.rows[0])
            back = keys(page.rows) + back
            position = at(page.rows[0], backwards=True)
        assert back == keys(whole.rows)[:-1]
        assert (page.offset, page.total) == (0, NUMBER)
