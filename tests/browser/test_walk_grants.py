"""The walk of an operator who enters the grant of an organization and imports its members."""

from __future__ import annotations

import json

from tests.browser import window

MEMBERS = ("ada", "bruno", "chiyo")


def test_a_grant_is_entered_and_its_members_are_imported(
    web, browser, sign_in, visitor, sandbox, new_organization, unique
):
    slug = new_organization()
    users = [unique(each) for each in MEMBERS]
    domain = sandbox.domain("google", "acme.example", [f"{each}@acme.example" for each in MEMBERS])
    sign_in()
    window.opened(browser, f"{web}/dashboard/organizations/{slug}")

    visitor.use("Enter a grant of Google").at("Grant of Google")
    visitor.write("Subject", "nobody@acme.example")
    visitor.write("Or its content", json.dumps(domain.service_account_key)).use("Test and store")
    visitor.sees_notice("Nothing was stored: Google refuses the grant.")
    assert "check the address" in visitor.text("#e-subject")
    visitor.write("Subject", domain.subject)
    visitor.write("Or its content", json.dumps(domain.service_account_key)).use("Test and store").at(slug)
    visitor.until(lambda _: visitor.notices[0].startswith("Google accepts the grant, and it is stored."))
    assert domain.subject in visitor.text("section[aria-labelledby=grants]")

    visitor.use("Import members by the grant of Google").at("Import members")
    lines = [f"{user};{name}@acme.example" for user, name in zip(users, MEMBERS, strict=True)]
    visitor.write("Members", "\n".join(["userId;email", *lines])).use("Check the list").at("Check the import")
    assert visitor.text("section[aria-labelledby=created]").count("@acme.example") == len(users)
    visitor.use("Import 3 members").at(slug)
    visitor.sees_notice("Imported: 3 created, 0 changed, 0 unchanged.")
    assert "3 delegated connections" in visitor.text("section[aria-labelledby=grants]")
    shown = visitor.text("section[aria-labelledby=members]")
    assert [user for user in users if user not in shown] == []

    visitor.use(users[0]).at(users[0])
    assert "Access by the organization's grant" in visitor.text("section[aria-labelledby=connections]")
    assert "Google" in visitor.text("section[aria-labelledby=calendars] tbody")
    expected = "the server responded with a status of 400"
    assert [each for each in window.complaints(browser) if expected not in each] == []
