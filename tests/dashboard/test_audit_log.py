"""The audit log: its pages, search, filters, export and links, and what is recorded in it."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta

import pytest

from app.dashboard import audit_log
from app.dashboard.audit_log import AuditTarget, target_of
from app.dashboard.sign_in import login_throttle
from store.sql.models import AuditRecord, now
from store.sql.queries import audit
from tests.dashboard.audit_records import records
from tests.dashboard.visiting import Person, words

ODD = "<b onmouseover=alert(1)>x</b> שלום 📅"


@pytest.fixture
def record(stores):
    """Write into the log."""

    def write(actor, action="createKey", subject="alm_1234", changes=None):
        with stores.database.writing() as session:
            audit.record(session, actor=actor, action=action, subject=subject, changes=changes)

    return write


def targets(page):
    return [words(row.find_all("td")[2]) for row in page.html.select("tbody tr")]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"person": "ADA"}, {"one", "two"}),
        ({"action": "Create key"}, {"one", "three"}),
        ({"target": "tw"}, {"two"}),
        ({"person": "ada", "action": "createKey"}, {"one"}),
        ({"person": "ada", "action": "createKey", "target": "two"}, set()),
    ],
)
def test_filters_narrow_the_list_together(signed_in, record, unique, filters, found):
    mark = unique("filtered")
    record(f"{mark} ada", "createKey", "one")
    record(f"{mark} ada", "deleteUser", "two")
    record(f"{mark} eve", "createKey", "three")

    page = signed_in.get("/audit", q=mark, **filters)

    assert set(targets(page)) == found
    for name, value in filters.items():
        (remove,) = page.html.select(f'[aria-label="Remove {name}: {value}"]')
        assert name not in remove["href"]
    # The search is the only field.
    assert [each["name"] for each in page.html.select("main input:not([type=hidden])")] == ["q"]


def test_days_bound_the_list_inclusively(signed_in, stores, unique):
    actor, moment = unique("dated"), now()
    days = [moment - timedelta(days=ago) for ago in range(5)]
    with stores.database.writing() as session:
        for ago, day in enumerate(days):
            session.add(AuditRecord(actor=actor, action="createKey", subject=f"{ago}", created_at=day))
    texts = [f"{day:%Y-%m-%d}" for day in days]

    page = signed_in.get("/audit", q=f"{texts[3]} {actor} {texts[1]}")

    assert set(targets(page)) == {"1", "2", "3"}
    assert set(targets(signed_in.get("/audit", q=f"{actor} {texts[1]}"))) == {"1"}


@pytest.mark.parametrize("day", ["yesterday", "2026-13-01", "9999-12-31", "0"])
def test_a_day_that_is_none_is_text(signed_in, day):
    assert signed_in.get("/audit", q=day).status == 200
    assert signed_in.get("/audit/export", q=day).status == 200


def test_what_a_person_does_at_once_is_one_row(signed_in, stores, new_user, unique):
    actor, users, moment = unique("inviter"), [new_user() for _ in range(50)], now() - timedelta(minutes=5)
    with stores.database.writing() as session:
        for user in users:
            session.add(AuditRecord(actor=actor, action="inviteUser", subject=user, created_at=moment))
        later = moment + timedelta(minutes=1)
        session.add(AuditRecord(actor=actor, action="inviteUser", subject="later", created_at=later))

    page = signed_in.get("/audit", q=actor)

    alone, together = page.html.select("tbody tr")
    assert "later" in words(alone)
    assert words(together.summary) == "50 targets"
    assert {words(each) for each in together.select("li a")} == set(users)


def test_the_next_page_keeps_the_filters(signed_in, record, unique, monkeypatch):
    actor = unique("kept")
    for number in range(130):
        record(actor, subject=f"key {number}")
        record(actor, "deleteUser", subject=f"user {number}")

    monkeypatch.setattr(audit, "AT_ONCE", timedelta(seconds=-1))

    first = signed_in.get("/audit", person=actor, action="createKey")
    rest = signed_in.get(first.html.find("a", rel="next")["href"])

    assert targets(first) + targets(rest) == [f"key {number}" for number in reversed(range(130))]


def exported(page):
    return list(csv.reader(io.StringIO(page.text)))


def test_what_is_found_is_exported_as_csv(signed_in, record, unique, monkeypatch):
    monkeypatch.setattr(audit_log, "BATCH", 2)
    actor = unique("exported")
    for number in range(5):
        record(actor, subject=f"{number}", changes={"name": ("a", "b"), "slug": (None, "c, d")})
    record(unique("another"))

    page = signed_in.get("/audit/export", person=actor)

    assert page.headers["Content-Type"] == "text/csv; charset=utf-8"
    named = r'attachment; filename="audit-log-\d{4}-\d\d-\d\d.csv"'
    assert re.fullmatch(named, page.headers["Content-Disposition"])
    head, *lines = exported(page)
    assert head == ["time", "actor", "action", "target", "changes"]
    assert [line[1:] for line in lines] == [
        [actor, "createKey", str(number), "name: a to b; slug: none to c, d"] for number in (4, 3, 2, 1, 0)
    ]


def test_old_and_new_values_are_shown(signed_in, record, unique):
    actor = unique("changed")
    record(actor, changes={"name": (ODD, None), "url": ("same", "same"), "paused": (False, True)})

    page = signed_in.get("/audit", q=actor)

    shown = {words(each) for each in page.html.select(".changes li")}
    assert shown == {f"Name: from {ODD} → to none", "Paused: from no → to yes"}
    assert page.html.find("b") is None


def test_long_values_are_cut(stores, record, unique):
    record(actor := unique("long"), changes={"members": (None, ["x" * 50] * 20)})

    with stores.database.reading() as session:
        (row,) = audit.page(session, actor)
    assert len(row.changes["members"][1]) == audit.MAX_VALUE


@pytest.mark.parametrize(
    ("action", "subject", "target"),
    [
        ("createUser", "ada", AuditTarget("user", "ada")),
        ("connect", "ada/google", AuditTarget("user", "ada")),
        ("renameUser", "ada to grace", AuditTarget("user", "grace")),
        ("deleteUser", "ada", None),
        ("inviteUser", "ada", AuditTarget("user", "ada")),
        ("revokeInvitation", "ada", AuditTarget("user", "ada")),
        ("replayFailedDeliveries", f"wh_{'0' * 24}", AuditTarget("webhook", f"wh_{'0' * 24}")),
        ("changeOrganization", "acme to acme-2", AuditTarget("organization", "acme-2")),
        ("addMembers", "3 to acme", AuditTarget("organization", "acme")),
        ("storeGrant", "acme/google", AuditTarget("organization", "acme")),
        ("replayDelivery", f"wh_{'0' * 24}/msg_1", AuditTarget("webhook", f"wh_{'0' * 24}")),
        ("createKey", "alm_1234", AuditTarget("list", "keys")),
        ("changeRole", "Ada L.", AuditTarget("person", "Ada L.")),
        ("createUser", "<b>", None),
        ("signIn", "127.0.0.1", None),
    ],
)
def test_a_subject_names_what_was_changed(action, subject, target):
    assert target_of(action, subject) == target


def test_subjects_that_exist_are_links(signed_in, record, unique, administrator):
    slug, gone = unique("acme"), unique("gone")
    signed_in.do("/organizations", {"slug": slug, "name": "Acme"})
    record(actor := unique("linked"), "addMembers", f"3 to {slug}")
    record(actor, "addMembers", f"3 to {gone}")
    record(actor, "changeRole", administrator.name)

    page = signed_in.get("/audit", q=actor)

    links = {words(each): each["href"] for each in page.html.select("tbody td:not(.end) a")}
    assert links[f"3 to {slug}"] == f"/dashboard/organizations/{slug}"
    assert set(links) == {f"3 to {slug}", administrator.name}
    for each in links.values():
        assert signed_in.get(each).status == 200


def test_what_changes_in_the_dashboard_is_recorded(signed_in, unique):
    slug = unique("acme")
    signed_in.do("/organizations", {"slug": slug, "name": "Old"})
    signed_in.do(f"/organizations/{slug}/rename", {"slug": f"{slug}-2", "name": "New"})

    page = signed_in.get("/audit", target=slug, action="changeOrganization")

    assert {words(each) for each in page.html.select(".changes li")} == {
        f"Slug: from {slug} → to {slug}-2",
        "Name: from Old → to New",
    }


@pytest.mark.parametrize(
    ("new", "shown"),
    [
        ("http://127.0.0.2/x", ["http://127.0.0.1/…", "http://127.0.0.2/…"]),
        ("http://127.0.0.1/secret3?k=secret4", ["http://127.0.0.1/…", "http://127.0.0.1/… (another path)"]),
    ],
)
def test_paths_of_webhooks_are_not_recorded(api, stores, new, shown):
    made = api.post("/webhooks", {"url": "http://127.0.0.1/secret1"}).json["data"]["id"]

    assert api.call("PATCH", f"/webhooks/{made}", json={"url": new}).status_code == 200

    with stores.database.reading() as session:
        found = audit.page(session, made)
    assert found[0].changes["url"] == shown
    assert "secret" not in "".join(str(each.changes) for each in found)


def test_failed_sign_ins_are_recorded_with_their_address(browser_of, administrator, client_address, stores):
    here = client_address()
    browser_of(address=here).sign_in(Person(administrator.name, "wrong password"))
    browser_of(address=here).sign_in(Person("my secret password", "wrong password"))

    assert records(stores, f"from {here}") == [
        ("not signed in", "signInFailed", f"an unknown name from {here}"),
        ("not signed in", "signInFailed", f"{administrator.name} from {here}"),
    ]


def test_a_flood_of_failed_sign_ins_does_not_fill_the_log(
    browser_of, client_address, stores, monkeypatch, unique
):
    """Records are never deleted, so strangers must not be able to write them without limit."""
    for name, most in (("RECORDED", 2), ("CUT_OFF", 1)):
        item = type(getattr(login_throttle, name))(most, 1, namespace=unique("flood"))
        monkeypatch.setattr(login_throttle, name, item)
    hosts = [client_address() for _ in range(5)]

    for host in hosts:
        assert browser_of(address=host).sign_in(Person("nobody at all", "wrong")).status == 401

    with stores.database.reading() as session:
        found = audit.page(session, audit.AuditFilter(action="signInFailed"), limit=3)
    assert [each.subject for each in found] == [
        "more than 2 in an hour, of unknown names: the log of the service has the others",
        f"an unknown name from {hosts[1]}",
        f"an unknown name from {hosts[0]}",
    ]


def rows(page):
    return [[words(cell) for cell in row.select("th, td:not(.end)")] for row in page.html.select("tbody tr")]


def test_it_shows_actor_action_and_time_to_the_second(signed_in, record, unique):
    record(actor := unique("actor"), "deleteWebhook", "wh_1")

    page = signed_in.get("/audit")
    when, *entry = rows(page)[0]

    assert entry == [actor, "Delete webhook", "wh_1"]
    assert when == "just now"
    exact = page.html.select_one("tbody time")["title"]
    assert re.fullmatch(r"\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d:\d\d UTC", exact)


@pytest.mark.parametrize("text", ["Actor-of-it", "replay DELIVERY", "replayDelivery", "msg_0f"])
def test_a_search_finds_actor_action_and_subject(signed_in, record, unique, text):
    actor = unique("actor-of-it")
    record(actor, "replayDelivery", "wh_1/msg_0f1e")
    record(unique("other"))

    found = rows(signed_in.get("/audit", q=text))

    assert [actor, "Replay delivery", "wh_1/msg_0f1e"] in [row[1:] for row in found]
    assert all(text.lower().replace(" ", "") in "".join(row).lower().replace(" ", "") for row in found)


def test_a_search_has_no_wildcards(signed_in, record, unique):
    record(actor := unique("100%"))

    assert [row[1] for row in rows(signed_in.get("/audit", q="100%"))] == [actor]
    assert rows(signed_in.get("/audit", q="1%0")) == []


@pytest.mark.parametrize("before", ["x", "-1", "0", "9" * 30, "1.5"])
def test_an_odd_page_is_the_first_or_the_last(signed_in, record, unique, before):
    record(unique("actor"))

    page = signed_in.get("/audit", before=before)

    assert page.status == 200
    assert (rows(page) == []) == (before == "0")
