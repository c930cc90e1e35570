"""Lists of users grow with the number of users, not with users times members."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from flask import Flask
from sqlalchemy import event, insert

from app.schemas.records import OrganizationSchema
from store.sql.models import Membership, Organization, User
from store.sql.queries import api_keys, organizations
from tests.app.answers import INCLUDED, pages
from tests.conftest import Api, stores_of
from tests.store.statements import recorded

pytestmark = pytest.mark.slow

# The number of members that an organization shows in a list of users.
SHOWN = 100
FEW, MANY = 100, 1000


@pytest.fixture
def lists(racing_app: Flask, unique) -> Callable[[int], list[str]]:
    """Make two organizations with the same users as members: ``lists(100)``; returns their slugs."""

    def make(size: int) -> list[str]:
        slugs = [unique("org"), unique("org")]
        with stores_of(racing_app).database.writing() as session:
            groups = [Organization(slug=slug) for slug in slugs]
            users = [User(custom_id=unique("member")) for _ in range(size)]
            session.add_all([*groups, *users])
            session.flush()
            links = [{"organization_id": group.id, "user_id": user.id} for group in groups for user in users]
            session.execute(insert(Membership), links)
        return slugs

    return make


@dataclass
class Work:
    """The database work of one request."""

    statements: list[str]
    rows: int = 0


@pytest.fixture
def work(racing_app: Flask) -> Iterator[Work]:
    """Counts statements, and the rows that were fetched where the driver lets us see each."""
    database = stores_of(racing_app).database
    engine = database.engine

    def count_rows(connection, *_: object) -> None:
        def note(_cursor: object, row: tuple[object, ...]) -> tuple[object, ...]:
            found.rows += 1
            return row

        if engine.dialect.name == "sqlite":
            connection.row_factory = note

    with recorded(database) as statements:
        found = Work(statements)
        event.listen(engine, "checkout", count_rows)
        yield found
        event.remove(engine, "checkout", count_rows)


@pytest.mark.parametrize("path", ["/users", "/organizations/{slug}/members", "/organizations"])
def test_ten_times_the_members_cost_about_ten_times_as_much(lists, racing_app, work, path):
    costs = []
    for size in (FEW, MANY):
        slug, _ = lists(size)
        bound = key_of(racing_app, slug)
        # The first request with a key also reads the key.
        bound.get(path.format(slug=slug))
        work.statements.clear()
        work.rows = 0
        answer = bound.get(path.format(slug=slug))
        data = answer.json["data"]
        assert len(data if path != "/organizations" else data[0]["members"]) == size
        costs.append((len(answer.data), work.rows, len(work.statements)))

    (few_bytes, few_rows, few_statements), (many_bytes, many_rows, many_statements) = costs
    assert many_bytes <= 12 * few_bytes
    assert many_rows <= 12 * few_rows
    assert many_statements == few_statements


def test_each_organization_is_encoded_once_for_all_its_members(lists, racer, monkeypatch):
    slug, _ = lists(SHOWN)
    dumped = []
    dump = OrganizationSchema.dump

    def note(schema: OrganizationSchema, *args: object, **options: object) -> object:
        dumped.append(args)
        return dump(schema, *args, **options)

    monkeypatch.setattr(OrganizationSchema, "dump", note)
    answer = racer.get(f"/organizations/{slug}/members")

    assert [len(user["organizations"]) for user in answer.json["data"]] == [2] * SHOWN
    assert len(dumped) == 2


def key_of(app: Flask, slug: str) -> Api:
    """A caller with a key that is bound to this organization."""
    with stores_of(app).database.writing() as session:
        number = organizations.ids(session, [slug], organization_id=None)[slug]
        key = api_keys.create(session, prefix="alm_", name="test", organization_id=number)
    return Api(app.test_client(), key)


@pytest.mark.parametrize(("size", "extra"), [(SHOWN, {}), (SHOWN + 1, {"membersTruncated": True})])
def test_shortened_member_list_has_the_member_count(lists, racer, size, extra):
    slugs = sorted(lists(size))
    extra = extra and {**extra, "memberCount": size}
    whole = {slug: racer.get(f"/organizations/{slug}").json["data"] for slug in slugs}

    for path in (f"/organizations/{slugs[0]}/members", "/users"):
        users = {user["id"]: user for user in racer.get(path).json["data"]}
        for member in whole[slugs[0]]["members"]:
            for slug, shown in zip(slugs, users[member["id"]]["organizations"], strict=True):
                assert shown == whole[slug] | {"members": whole[slug]["members"][:SHOWN]} | extra


def test_a_single_user_and_an_organization_stay_whole(lists, racer):
    slug, _ = sorted(lists(SHOWN + 1))
    organization = racer.get(f"/organizations/{slug}").json["data"]
    user = organization["members"][-1]["id"]

    assert len(organization["members"]) == SHOWN + 1
    assert organization.keys() == {"slug", "name", "createdAt", "members"}
    assert racer.get(f"/users/{user}").json["data"]["organizations"][0] == organization
    assert racer.get(f"/users/{user}/organizations").json["data"][0] == organization
    assert organization in racer.get("/organizations").json["data"]
    assert racer.put(f"/users/{user}", {"userId": user}).json["data"]["organizations"][0] == organization


def test_include_narrows_every_list_of_users(lists, racer):
    slug, _ = lists(2)
    for query, present in INCLUDED.items():
        for path in ("/users", f"/organizations/{slug}/members"):
            answer = racer.call("GET", path, query_string=f"{query}&limit=5")
            assert {frozenset(user) for user in answer.json["data"]} == {
                frozenset({"id", "createdAt", *present})
            }, query
    assert racer.get("/users", include="members").status_code == 400


def test_pages_show_the_same_as_the_whole_list(lists, racer):
    slug, _ = lists(SHOWN + 5)
    users = racer.get(f"/organizations/{slug}/members").json["data"]

    page = racer.get(f"/organizations/{slug}/members", limit=7).json

    assert page["data"] == users[:7]
    assert [user for ids in pages(racer, f"/organizations/{slug}/members", 50) for user in ids] == [
        user["id"] for user in users
    ]
