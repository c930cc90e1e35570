"""A pasted list or a CSV file of members: ``userId,email`` in each line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import StringIO

from marshmallow import ValidationError

from app.accounts.delegations import Member
from app.accounts.organization_grants import domain_of
from app.dashboard.forms import UserId
from app.schemas.connections import Address
from app.schemas.organization_grants import MAX_IMPORTED

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

    members: list[Member] = field(default_factory=list)
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
    for number, row in _rows(text):
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


def written(members: Iterable[Member]) -> str:
    """Members as a list that ``parse`` reads, without the other columns of their file."""
    # Addresses may have commas, semicolons and quotes, but no tabs.
    text = StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(members)
    return text.getvalue()


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
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


def _header(row: list[str]) -> tuple[int, int] | None:
    """The columns of identifier and address, if the line names them."""
    names = [each.lower().translate({ord(" "): None, ord("-"): None, ord("_"): None}) for each in row]
    user_id = next((index for index, each in enumerate(names) if each in USER_ID_NAMES), None)
    email = next((index for index, each in enumerate(names) if each in EMAIL_NAMES), None)
    return None if user_id is None or email is None else (user_id, email)


def _member(row: list[str], columns: tuple[int, int], domain: str | None) -> Member:
    """The member in a line.

    :raise ValidationError: with a sentence about the line
    """
    if len(row) <= max(columns):
        raise ValidationError(
            f"{_quoted(' '.join(row))} needs an identifier and an e-mail address, with a comma, a semicolon "
            "or a tab between them"
        )
    user_id, email = (row[each] for each in columns)
    try:
        UserId().parse(user_id)
    except ValidationError as error:
        raise ValidationError(f"the identifier {_quoted(user_id)} {error.messages[0]}") from error
    try:
        Address().parse(email)
    except ValidationError as error:
        raise ValidationError(f"the e-mail {_quoted(email)} {error.messages[0]}") from error
    if domain is not None and domain_of(email) != domain:
        raise ValidationError(f"the e-mail {_quoted(email)} must be in {domain}, the domain of the grant")
    return Member(user_id, email)


def _require_distinct(member: Member, number: int, numbers: dict[str, int]) -> None:
    """Reject a user or an address of an earlier line.

    :raise ValidationError: with the number of that line
    """
    # Addresses have an @, which identifiers cannot have.
    email = member.email.lower()
    for what, key, shown in (("identifier", member.user_id, member.user_id), ("e-mail", email, member.email)):
        if key in numbers:
            raise ValidationError(f"the {what} {_quoted(shown)} is in line {numbers[key]} too")
    numbers |= {member.user_id: number, email: number}


def _quoted(text: str) -> str:
    return f"“{text[:MAX_QUOTE]}{'…' if len(text) > MAX_QUOTE else ''}”"
