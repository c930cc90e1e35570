"""``almanac grants import``, with a real worker and the sandbox."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from app.accounts import directory_import
from app.cli.main import main
from tests.conftest import connect
from tests.people import grant_of

pytestmark = pytest.mark.usefixtures("worker")

SCOPES = {
    "google": (
        *("openid", "email", "calendar", "admin.directory.user.readonly"),
        "admin.directory.resource.calendar.readonly",
    ),
    "microsoft": ("Calendars.ReadWrite", "MailboxSettings.Read", "User.Read.All", "Place.Read.All"),
}


@pytest.fixture
def slug(api, new_organization) -> Iterator[str]:
    """An organization; its members, whose ids come from the directory, are deleted after the test."""
    made = new_organization()
    yield made
    for user in members(api, made):
        assert api.delete(f"/users/{user}").status_code == 200


@pytest.fixture
def tenant(api, slug, sandbox):
    return granted(api, slug, sandbox, "microsoft", ["room-1@acme.example", "room-2@acme.example"])


def granted(api, slug, sandbox, provider, rooms, people=("ada@acme.example", "grace@acme.example")):
    described = [{"email": each, "capacity": 4} for each in rooms]
    domain = sandbox.domain(provider, "acme.example", people, rooms=described, scope=SCOPES[provider])
    answer = api.put(f"/organizations/{slug}/grants/{provider}", grant_of(domain))
    assert answer.status_code == 200, answer.text
    return domain


@pytest.fixture
def almanac(environment, settings):
    def run(*arguments: str) -> Result:
        unset = dict.fromkeys((name for name in os.environ if name.startswith("ALMANAC_")), None)
        logged = logging.getLogger().handlers[:]
        try:
            return CliRunner().invoke(main, list(arguments), env={**unset, **environment})
        finally:
            logging.getLogger().handlers[:] = logged

    return run


def members(api, slug):
    return {each["id"] for each in api.get(f"/organizations/{slug}/members").json["data"]}


def addresses(api, slug, provider="microsoft"):
    listed = api.get(f"/organizations/{slug}/grants/{provider}/directory").json["data"]
    return {each["email"]: each.get("userId") for each in listed}


def test_people_are_imported_without_the_right_to_read_rooms(api, slug, sandbox, almanac):
    people = ["ada@acme.example"]
    permissions = ("Calendars.ReadWrite", "MailboxSettings.Read", "User.Read.All")
    domain = sandbox.domain("microsoft", "acme.example", people, scope=permissions)
    assert api.put(f"/organizations/{slug}/grants/microsoft", grant_of(domain)).status_code == 200

    refused = almanac("grants", "import", slug, "microsoft", "--yes")

    assert refused.exit_code == 1
    assert refused.stderr.endswith("use --kind user or --kind room\n"), refused.stderr
    assert members(api, slug) == set()
    assert almanac("grants", "import", slug, "microsoft", "--yes", "--kind", "user").exit_code == 0
    assert len(members(api, slug)) == 1


def test_a_preview_names_what_is_new_and_changes_nothing(api, slug, tenant, almanac):
    result = almanac("grants", "import", slug, "microsoft")
    assert result.exit_code == 0, result.output
    assert "New: 4\n" in result.stdout
    assert "user ada@acme.example  Ada" in result.stdout
    assert "room room-1@acme.example" in result.stdout
    assert "Nothing was changed" in result.stdout
    assert members(api, slug) == set()


def test_an_import_makes_members_by_the_ids_of_the_directory_and_can_be_repeated(api, slug, tenant, almanac):
    done = almanac("grants", "import", slug, "microsoft", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Imported: 4 of 4" in done.stdout
    by_address = addresses(api, slug)
    assert members(api, slug) == set(by_address.values())
    listed = api.get(f"/organizations/{slug}/grants/microsoft/directory").json["data"]
    assert all(each["userId"] == each["id"] for each in listed)

    again = almanac("grants", "import", slug, "microsoft", "--yes")
    assert again.exit_code == 0
    assert "New: 0\nKnown: 4\nIn no directory any more: 0\n" in again.stdout
    assert members(api, slug) == set(by_address.values())


def test_a_member_with_another_user_id_is_known_by_the_address(api, slug, tenant, almanac):
    own = [{"userId": f"{slug}-ada", "email": "Ada@acme.example"}]
    api.post(f"/organizations/{slug}/grants/microsoft/members", {"members": own})
    almanac("grants", "import", slug, "microsoft", "--yes", "--kind", "user")
    assert addresses(api, slug)["ada@acme.example"] == f"{slug}-ada"
    assert len(members(api, slug)) == 2


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_a_domain_that_another_organization_has_imported_is_refused(
    api, slug, new_organization, sandbox, almanac, provider
):
    people = ["admin@acme.example", "ada@acme.example"]
    domain = granted(api, slug, sandbox, provider, [], people)
    almanac("grants", "import", slug, provider, "--yes")
    other = new_organization()
    api.put(f"/organizations/{other}/grants/{provider}", grant_of(domain))

    preview = almanac("grants", "import", other, provider)
    done = almanac("grants", "import", other, provider, "--yes")

    assert "New: 0\n" in preview.stdout
    assert "ada@acme.example" in preview.stdout
    assert "the user of this id is a member of another organization" in preview.stdout
    assert done.exit_code == 0
    assert members(api, other) == set()
    # The first customer keeps them.
    ada = addresses(api, slug, provider)["ada@acme.example"]
    organizations = api.get(f"/users/{ada}/organizations").json["data"]
    assert [each["slug"] for each in organizations] == [slug]


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_a_member_by_own_consent_stays_the_same_user(api, slug, sandbox, almanac, new_user, provider):
    people = [f"{name}@acme.example" for name in ("admin", "ada", "grace")]
    granted(api, slug, sandbox, provider, [], people)
    ada = new_user(slugs=(slug,))
    connect(api, ada, sandbox.account(provider, "ada@acme.example"), email="ADA@acme.example")
    # A user of another tenant, with an address of this one.
    stranger = new_user(sandbox.account(provider, "grace@acme.example"))

    preview = almanac("grants", "import", slug, provider)
    done = almanac("grants", "import", slug, provider, "--yes")

    line = f"user ada@acme.example  Ada  (replaces the connection of {ada} by own consent)\n"
    assert line in preview.stdout
    assert preview.stdout.count("own consent") == 1
    assert done.exit_code == 0, done.output
    by_address = addresses(api, slug, provider)
    assert by_address["ada@acme.example"] == ada
    assert members(api, slug) == {ada, *by_address.values()}
    assert stranger not in members(api, slug)
    types = [api.get(f"/users/{each}/oauth/{provider}").json["data"]["type"] for each in (ada, stranger)]
    assert types == ["delegated", "oauth2"]


def test_a_member_with_two_accounts_of_the_directory_keeps_the_default_one(
    api, slug, sandbox, tenant, almanac, new_user
):
    accounts = [sandbox.account("microsoft", f"{name}@acme.example") for name in ("grace", "ada")]
    user = new_user(*accounts, slugs=(slug,))
    for _ in range(2):
        assert almanac("grants", "import", slug, "microsoft", "--yes", "--kind", "user").exit_code == 0
        by_address = addresses(api, slug)
        assert by_address["grace@acme.example"] == user
        assert members(api, slug) == {user, by_address["ada@acme.example"]}


@pytest.mark.parametrize("deleted", [False, True], ids=["suspended", "deleted"])
def test_members_who_left_the_directory_are_named_and_stay(api, slug, sandbox, tenant, almanac, deleted):
    almanac("grants", "import", slug, "microsoft", "--yes")
    before = members(api, slug)
    if deleted:
        sandbox.delete("grace@acme.example")
    else:
        sandbox.change_domain("acme.example", members=[{"email": "grace@acme.example", "suspended": True}])
    result = almanac("grants", "import", slug, "microsoft", "--yes")
    assert result.exit_code == 0
    gone = result.stdout.partition("In no directory any more: 1\n")[2]
    assert "grace@acme.example" in gone
    assert members(api, slug) == before


def test_a_part_of_the_directory_says_nothing_about_who_has_left(api, slug, tenant, almanac):
    result = almanac("grants", "import", slug, "microsoft", "--kind", "room", "--q", "ROOM-2", "--yes")
    assert "New: 1\n" in result.stdout
    assert "not compared, because only a part was read" in result.stdout
    assert len(members(api, slug)) == 1


def test_rooms_of_google_are_named_as_no_members(api, slug, sandbox, almanac):
    granted(api, slug, sandbox, "google", ["c_1@resource.calendar.google.com"])
    result = almanac("grants", "import", slug, "google", "--yes")
    assert result.exit_code == 0, result.output
    assert "No members: 1\n  room c_1@resource.calendar.google.com" in result.stdout
    assert "Imported: 2 of 2" in result.stdout


def test_each_batch_is_a_transaction_of_its_own(api, slug, sandbox, almanac, monkeypatch):
    monkeypatch.setattr(directory_import, "MAX_IMPORTED", 60)
    people = [f"p{number:04}@acme.example" for number in range(61)]
    granted(api, slug, sandbox, "microsoft", [], people)
    whole = almanac("grants", "import", slug, "microsoft", "--all")
    assert all(f"user {each}  " in whole.stdout for each in people)
    result = almanac("grants", "import", slug, "microsoft", "--yes")
    assert "Imported: 60 of 61\nImported: 61 of 61\n" in result.stdout
    assert "  and 11 more: --all prints them\n" in result.stdout


def test_a_directory_that_cannot_be_read_is_an_error_and_imports_nobody(api, slug, sandbox, tenant, almanac):
    sandbox.change_domain("acme.example", scope=["Calendars.ReadWrite", "User.Read.All"])
    result = almanac("grants", "import", slug, "microsoft", "--yes")
    assert result.exit_code == 1
    assert "Place.Read.All" in result.stderr
    assert members(api, slug) == set()


def test_an_organization_without_a_grant_is_an_error(slug, almanac):
    for of, why in ((slug, "There is no grant of Microsoft"), ("nowhere", "Organization not found")):
        result = almanac("grants", "import", of, "microsoft")
        assert (result.exit_code, why in result.stderr) == (1, True)
