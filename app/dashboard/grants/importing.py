"""Importing members of a grant: the list, a preview in which nothing is stored, and the import itself."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import NamedTuple

from flask import request
from flask.typing import ResponseReturnValue
from marshmallow import ValidationError

from app.accounts import delegations
from app.accounts import organization_grants as grants
from app.accounts.delegations import ImportedMember
from app.accounts.disconnect import clean_up
from app.accounts.organization_grants import domain_of
from app.dashboard import forms
from app.dashboard.blueprint import blp, done, page
from app.dashboard.forms import UserId
from app.dashboard.organizations import get_organization
from app.http.authentication import caller
from app.http.routes import route_facts
from app.schemas.connections import Address
from app.schemas.organization_grants import MAX_IMPORTED
from app.services import services
from providers import registry
from store.sql.models import Role
from store.sql.queries.organization_grants import GrantSummary
from store.sql.queries.organizations import Summary

# The page lists at most this many wrong lines, and this many members of each kind.
MAX_WRONG = 50
MAX_LISTED = 100

NO_TEXT = "is no text in UTF-8: save the file as CSV UTF-8"


class ImportGroup(NamedTuple):
    """Members of a preview that the import treats alike: created, changed or unchanged."""

    title: str
    badge: str
    hint: str
    members: list[ImportedMember]


@blp.get("/organizations/<slug>/grants/<known_grant_provider:provider>/members")
@route_facts(role=Role.OPERATOR)
def grant_members(slug: str, provider: str) -> ResponseReturnValue:
    """The form for a list of members."""
    return _form(slug, provider, forms.blank(), MemberList())


@blp.post("/organizations/<slug>/grants/<known_grant_provider:provider>/members")
@route_facts(role=Role.OPERATOR)
def preview_grant_members(slug: str, provider: str) -> ResponseReturnValue:
    """Show the changes that an import of the list would make; nothing is stored."""
    organization, grant = _granted(slug, provider)
    form = sent_list("members")
    found = _checked(form, grant)
    if not form:
        return _form(slug, provider, form, found, 400)
    with services().stores.database.reading() as session:
        preview = delegations.preview_import(session, caller(), slug, provider, found.members)
    emails = dict(found.members)
    title = registry.title(provider)
    personal = set(preview.personal)

    def group(name: str, badge: str, hint: str, user_ids: list[str]) -> ImportGroup:
        return ImportGroup(name, badge, hint, [ImportedMember(each, emails[each]) for each in user_ids])

    groups = (
        group("Created", "good", f"They have no account of {title} here yet.", preview.created),
        group(
            "Changed",
            "warn",
            "Their connection is replaced, or they become members."
            + (f" {len(personal)} of them had given a consent of their own, which ends." if personal else ""),
            preview.changed,
        ),
        group("Unchanged", "", "They are read by the grant already.", preview.unchanged),
    )
    return page(
        "import_preview.html",
        organization=organization,
        provider=provider,
        title=title,
        groups=groups,
        total=len(found.members),
        personal=personal,
        text=written(found.members),
        most=MAX_LISTED,
    )


@blp.post("/organizations/<slug>/grants/<known_grant_provider:provider>/members/import")
@route_facts(role=Role.OPERATOR)
def import_grant_members(slug: str, provider: str) -> ResponseReturnValue:
    """Import the members of a list that was previewed: all of them, or none."""
    _, grant = _granted(slug, provider)
    form = sent_list("members")
    found = _checked(form, grant)
    if not form:
        return _form(slug, provider, form, found, 400)
    with services().stores.database.writing() as session:
        imported = delegations.import_members(session, caller(), slug, provider, found.members)
    clean_up(imported.replaced)
    return done(
        f"Imported: {len(imported.created)} created, {len(imported.changed)} changed, "
        f"{len(imported.unchanged)} unchanged.",
        "organization",
        slug=slug,
    )


def _granted(slug: str, provider: str) -> tuple[Summary, GrantSummary]:
    """An organization and its grant.

    :raise NotFound: when either does not exist
    """
    with services().stores.database.reading() as session:
        organization = get_organization(session, slug)
        return organization, grants.find(session, caller(), slug, provider)


def sent_list(name: str) -> forms.Form:
    """The list of this request: a file if one was chosen, else the text of the field."""
    form = forms.blank(**{name: request.form.get(name, "")})
    upload = request.files.get("file")
    if upload is not None and upload.filename:
        try:
            form.values[name] = upload.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            form.refuse(name, NO_TEXT)
    return form


def _checked(form: forms.Form, grant: GrantSummary) -> MemberList:
    """The members of a list; its mistakes are errors of the form."""
    if not form:
        return MemberList()
    found = parse(form.values["members"], delegations.required_domain(grant))
    if found.error is not None:
        form.refuse("members", found.error)
    if found.wrong:
        lines = "1 line is" if len(found.wrong) == 1 else f"{len(found.wrong)} lines are"
        form.refuse("", f"Nothing was stored: {lines} wrong. Correct the list and check it again.")
    return found


def _form(
    slug: str, provider: str, form: forms.Form, found: MemberList, status: int = 200
) -> ResponseReturnValue:
    organization, grant = _granted(slug, provider)
    return page(
        "import_members.html",
        status,
        organization=organization,
        provider=provider,
        title=registry.title(provider),
        domain=delegations.required_domain(grant),
        form=form,
        wrong=found.wrong[:MAX_WRONG],
        more=len(found.wrong) - MAX_WRONG,
        most=MAX_IMPORTED,
    )


SEPARATORS = "\t;,"
# The names of the two columns in a header, without spaces, hyphens and case.
USER_ID_NAMES, EMAIL_NAMES = ("userid", "user", "id"), ("email", "emailaddress", "mail")

# An error quotes at most this much of a line.
MAX_QUOTE = 60


@dataclass(frozen=True, slots=True)
class WrongLine:
    """A line that cannot be imported, counted from one, and what is wrong."""

    number: int
    error: str


@dataclass(slots=True)
class MemberList:
    """The members of a list, the line of each, and the lines that cannot be imported."""

    members: list[ImportedMember] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    wrong: list[WrongLine] = field(default_factory=list)

    @property
    def error(self) -> str | None:
        """Why the list as a whole cannot be imported."""
        if not self.members and not self.wrong:
            return "has no members: write an identifier and an e-mail address in each line"
        if len(self.members) > MAX_IMPORTED:
            return f"has {len(self.members)} members: import at most {MAX_IMPORTED} at once"
        return None


def parse(text: str, domain: str | None) -> MemberList:
    """Read a list; ``domain`` is the one that addresses must be in, if any.

    The first line may be a header that names the columns, in any order and among others. Lines are separated
    into fields by tabs, semicolons or commas, and fields may be quoted, as spreadsheets do.
    """
    found = MemberList()
    # The line of each identifier and of each address, which is compared without case.
    taken: dict[str, int] = {}
    columns: tuple[int, int] | None = None
    for number, row in rows_of(text):
        if columns is None:
            header = _header(row)
            columns = header or (0, 1)
            if header is not None:
                continue
        try:
            member = _member(row, columns, domain)
            _require_distinct(member, number, taken)
        except ValidationError as error:
            found.wrong.append(WrongLine(number, error.messages[0]))
        else:
            found.members.append(member)
            found.lines.append(number)
    return found


def written(members: Iterable[ImportedMember]) -> str:
    """Members as a list that ``parse`` reads, without the other columns of their file."""
    # Addresses may have commas, semicolons and quotes, but no tabs.
    text = StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(members)
    return text.getvalue()


def rows_of(text: str) -> Iterator[tuple[int, list[str]]]:
    """The number and the fields of each line that is not empty."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip(f"{SEPARATORS} "):
            continue
        separator = next((each for each in SEPARATORS if each in line), ",")
        try:
            (row,) = csv.reader([line], delimiter=separator, skipinitialspace=True)
        except csv.Error:
            # A field of more than 128 KiB.
            row = [line]
        yield number, [each.strip() for each in row]


def column_of(row: list[str], wanted: Sequence[str]) -> int | None:
    """The column that a header calls by one of these names, if the line is one."""
    names = [each.lower().translate({ord(" "): None, ord("-"): None, ord("_"): None}) for each in row]
    return next((index for index, each in enumerate(names) if each in wanted), None)


def _header(row: list[str]) -> tuple[int, int] | None:
    """The columns of identifier and address, if the line names them."""
    user_id, email = column_of(row, USER_ID_NAMES), column_of(row, EMAIL_NAMES)
    return None if user_id is None or email is None else (user_id, email)


def _member(row: list[str], columns: tuple[int, int], domain: str | None) -> ImportedMember:
    """The member in a line.

    :raise ValidationError: with a sentence about the line
    """
    if len(row) <= max(columns):
        raise ValidationError(
            f"{quoted(' '.join(row))} needs an identifier and an e-mail address, with a comma, a semicolon "
            "or a tab between them"
        )
    user_id, email = (row[each] for each in columns)
    require_identifier(user_id)
    try:
        Address().parse(email)
    except ValidationError as error:
        raise ValidationError(f"the e-mail {quoted(email)} {error.messages[0]}") from error
    if domain is not None and domain_of(email) != domain:
        raise ValidationError(f"the e-mail {quoted(email)} must be in {domain}, the domain of the grant")
    return ImportedMember(user_id, email)


def require_identifier(user_id: str) -> None:
    """Check the identifier of a user.

    :raise ValidationError: with a sentence about it
    """
    try:
        UserId().parse(user_id)
    except ValidationError as error:
        raise ValidationError(f"the identifier {quoted(user_id)} {error.messages[0]}") from error


def _require_distinct(member: ImportedMember, number: int, numbers: dict[str, int]) -> None:
    """Reject a user or an address of an earlier line.

    :raise ValidationError: with the number of that line
    """
    # Addresses have an @, which identifiers cannot have.
    email = member.email.lower()
    for what, key, shown in (("identifier", member.user_id, member.user_id), ("e-mail", email, member.email)):
        if key in numbers:
            raise ValidationError(f"the {what} {quoted(shown)} is in line {numbers[key]} too")
    numbers |= {member.user_id: number, email: number}


def quoted(text: str) -> str:
    """The start of a text, in quotation marks."""
    return f"“{text[:MAX_QUOTE]}{'…' if len(text) > MAX_QUOTE else ''}”"
