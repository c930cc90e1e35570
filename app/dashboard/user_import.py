"""Importing users from a list or a CSV file: all of them are registered, or none."""

from __future__ import annotations

from flask.typing import ResponseReturnValue
from marshmallow import ValidationError

from app.accounts import organizations
from app.dashboard import forms
from app.dashboard.blueprint import blp, done
from app.dashboard.forms import Slug
from app.dashboard.grants.importing import (
    MAX_WRONG,
    USER_ID_NAMES,
    WrongLine,
    column_of,
    quoted,
    require_identifier,
    rows_of,
    sent_list,
)
from app.dashboard.sign_in import sessions
from app.dashboard.users import users_page
from app.http.authentication import caller
from app.http.errors import NotFound
from app.http.routes import route_facts
from app.schemas.organization_grants import MAX_IMPORTED
from app.services import services
from store.sql.models import Role
from store.sql.queries import audit, users


class ImportForm(forms.Body):
    """What happens to the imported users; the list itself is a text or a file."""

    organization = Slug(load_default=None)


@blp.post("/import-users")
@route_facts(role=Role.OPERATOR)
def import_users() -> ResponseReturnValue:
    """Register the users of a list, and make them members of an organization if one is named."""
    form, listed = forms.read(ImportForm), sent_list("users")
    form.values |= listed.values
    form.errors |= listed.errors
    custom_ids, wrong = parse(form.values["users"])
    if wrong:
        lines = "1 line is" if len(wrong) == 1 else f"{len(wrong)} lines are"
        form.refuse("", f"Nothing was stored: {lines} wrong. Correct the list and import it again.")
    elif not custom_ids and form:
        form.refuse("users", "has no users: write an identifier in each line")
    elif len(custom_ids) > MAX_IMPORTED:
        form.refuse("users", f"has {len(custom_ids)} users: import at most {MAX_IMPORTED} at once")
    new = _register(custom_ids, form.data["organization"], form) if form else 0
    if not form:
        return users_page(forms.blank(), 400, imported=form, wrong=wrong[:MAX_WRONG])
    before = len(custom_ids) - new
    sentence = (
        f"{new} registered." if not before else f"{new} registered; {before} had been registered before."
    )
    slug = form.data["organization"]
    if slug is None:
        return done(sentence, "users")
    return done(f"{sentence} All {len(custom_ids)} are members of {slug}.", "organization", slug=slug)


def parse(text: str) -> tuple[list[str], list[WrongLine]]:
    """The identifiers of a list, and its wrong lines.

    The first line may be a header, as in an export of users; other columns than that of the identifier are
    ignored.
    """
    lines: dict[str, int] = {}
    wrong: list[WrongLine] = []
    column: int | None = None
    for number, row in rows_of(text):
        if column is None:
            named = column_of(row, USER_ID_NAMES)
            column = named or 0
            if named is not None:
                continue
        try:
            custom_id = row[column] if column < len(row) else ""
            require_identifier(custom_id)
            if custom_id in lines:
                raise ValidationError(f"the identifier {quoted(custom_id)} is in line {lines[custom_id]} too")
        except ValidationError as error:
            wrong.append(WrongLine(number, error.messages[0]))
        else:
            lines[custom_id] = number
    return list(lines), wrong


def _register(custom_ids: list[str], slug: str | None, form: forms.Form) -> int:
    """Register the users who are unknown, in one transaction; returns how many."""
    try:
        with services().stores.database.writing() as session:
            new = len(users.add_missing(session, custom_ids)[1])
            if new:
                subject = str(new) if slug is None else f"{new} for {slug}"
                audit.record(session, actor=sessions.actor(), action="createUsers", subject=subject)
            if slug is not None:
                organizations.add_members(session, caller(), slug, custom_ids)
    except NotFound:
        form.refuse("organization", "with this slug does not exist")
        return 0
    return new
