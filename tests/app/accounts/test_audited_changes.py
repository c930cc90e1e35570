"""Changes of users, organizations and members by an API key in the audit log."""

from __future__ import annotations

from store.sql.queries import audit
from tests.dashboard.audit_records import actions


def test_each_request_that_changes_something_is_recorded_once(api, stores, unique):
    user, other, slug = unique("user"), unique("other"), unique("org")
    new_user, new_slug = f"{user}-2", f"{slug}-2"
    for_all = {"userIds": [new_user, other]}

    api.post("/organizations", {"slug": slug, "name": "Acme", "quotas": {"heldUsers": 20}})
    api.post("/users", {"id": user, "organizationSlugs": [slug]})
    api.post("/users", {"id": other})
    api.put(f"/users/{user}", {"id": new_user})
    api.put(f"/organizations/{slug}", {"slug": new_slug, "name": "Acme Inc"})
    api.post(f"/organizations/{new_slug}/members", for_all)
    api.delete(f"/organizations/{new_slug}/members/{other}")
    api.delete(f"/organizations/{new_slug}/members", for_all)
    # These change nothing.
    api.post("/users", {"id": other})
    api.put(f"/users/{other}", {"id": other})
    api.put(f"/organizations/{new_slug}", {"name": "Acme Inc"})
    api.post(f"/organizations/{new_slug}/members", {"userIds": []})
    api.delete(f"/organizations/{new_slug}/members", for_all)
    api.delete(f"/organizations/{new_slug}/members/{other}")

    with stores.database.reading() as session:
        named = audit.page(session, limit=200)
    rows = [each for each in named if slug in each.subject or user in each.subject]
    key = rows[0].actor
    assert key.startswith("alm_")
    assert actions(stores, actor=key) == [
        ("createOrganization", slug),
        ("changeQuotas", slug),
        ("createUser", user),
        ("createUser", other),
        ("renameUser", f"{user} to {new_user}"),
        ("changeOrganization", f"{slug} to {new_slug}"),
        ("addMembers", f"1 to {new_slug}"),
        ("removeMember", f"{other} from {new_slug}"),
        ("removeMembers", f"1 from {new_slug}"),
    ]
    changes = {each.action: each.changes for each in rows}
    assert changes["createUser"] == {"organization": [None, slug]}
    assert changes["renameUser"] == {"identifier": [user, new_user]}
    assert changes["changeOrganization"] == {"slug": [slug, new_slug], "name": ["Acme", "Acme Inc"]}
    assert changes["addMembers"] == {"members": [None, other]}
