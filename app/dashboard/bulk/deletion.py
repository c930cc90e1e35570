"""Deleting several users: a page names them and asks for a text, then they are deleted."""

from __future__ import annotations

from flask import redirect, request, url_for
from flask.typing import ResponseReturnValue

from app.accounts import users as accounts
from app.dashboard import forms
from app.dashboard.blueprint import blp, done, failed, page, warned
from app.dashboard.pagination import ROWS
from app.http.authentication import caller
from app.http.errors import NotFound
from app.http.route_facts import route_facts
from app.schemas.fields import USER_ID
from app.services import services
from store.sql.models import Role
from store.sql.queries import users


@blp.route("/delete-users", methods=["GET", "POST"])
@route_facts(role=Role.OPERATOR)
def delete_users() -> ResponseReturnValue:
    """Ask for a confirmation; with the right text, delete the selected users and all their data."""
    if request.method == "GET":
        # The page of a confirmation was reloaded.
        return redirect(url_for("dashboard.users"))
    chosen = selected()
    with services().stores.database.reading() as session:
        found = [each for each in chosen if each in users.ids(session, chosen, organization_id=None)]
    if not found:
        return failed("Select at least one user first.", "users")
    phrase = f"delete {len(found)} {'user' if len(found) == 1 else 'users'}"
    if not forms.typed(phrase):
        wrong = "confirm" in request.form
        return page("delete_users.html", 400 if wrong else 200, user_ids=found, phrase=phrase, wrong=wrong)
    deleted = 0
    for custom_id in found:
        try:
            accounts.delete(caller(), custom_id)
            deleted += 1
        except NotFound:
            # Another administrator deleted the user meanwhile.
            continue
    what = "1 user is" if deleted == 1 else f"{deleted} users are"
    sentence = f"{what} deleted, with all tokens and cached calendar data."
    if deleted < len(found):
        return warned(f"{sentence} {len(found) - deleted} had been deleted before.", "users")
    return done(sentence, "users")


def selected() -> list[str]:
    """The users that were selected on a page of a list, without repetitions."""
    sent = dict.fromkeys(request.form.getlist("userId"))
    return [each for each in sent if USER_ID.fullmatch(each)][:ROWS]
