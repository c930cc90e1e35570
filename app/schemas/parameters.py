"""The parameters of paged lists and of scheduling, each declared once.

The query of a scheduling route is composed of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, pre_load

from app.schemas.fields import (
    Body,
    Clock,
    Instant,
    IntegerText,
    PathText,
    QuerySchema,
    Several,
    Text,
    TrueOrFalse,
    Word,
    about,
    at_most,
    given,
)
from providers import registry

ALIGNMENTS = ("start", "clock")
ON_FAILURE = ("fail", "partial")

MAX_MINUTES = 10_080
MAX_OVERLAPS = 1000
# A year.
MAX_NOTICE = 527_040
MAX_SLOTS_OF_A_USER = 1_000_000
MAX_CALENDARS = 200


PADDING = about("Minutes kept free before and after busy periods.")
PADDING_BEFORE = about("Minutes kept free before busy periods; default: `padding`.")
PADDING_AFTER = about("Minutes kept free after busy periods; default: `padding`.")
OVERLAPS = about("How many busy periods may overlap a free moment.")
NOTICE = about("No slot starts earlier than this many minutes from now.")
PROFILE = about("`ignore`: the stored availability of the users does not count.")
PRIMARY_ONLY = about("Only the main calendar of each account.")
# Longer than any id, so that one that does not exist is 404.
MAX_CONNECTION_ID = 256
CONNECTION = about("Only these connections, by id.")
OF_CALENDAR = about(
    "The connection that has the calendar, by id; without it, each of the provider is searched for it, the "
    "default one first."
)
CALENDAR_IDS = about("Only these calendars; `primary` is the main one of each account.")


class Unstated(int):
    """The default of a number that the profile of a person may state instead."""


NO_PADDING = Unstated(0)
APPLY, IGNORE = "apply", "ignore"
REQUEST, LEAST_BUSY = "request", "leastBusy"


class RangeQuery(QuerySchema):
    """The time range."""

    start = given(Instant, "ISO 8601; a bare date is its first moment.")
    end = given(Instant, "ISO 8601, not included. After `start`.")


class ConnectionQuery(QuerySchema):
    """Which connections to read."""

    connection = Several(Text(longest=MAX_CONNECTION_ID), load_default=list, metadata=CONNECTION)


class CalendarConnectionQuery(QuerySchema):
    """Which connection has the calendar in the path."""

    connection = Several(Text(longest=MAX_CONNECTION_ID), load_default=list, metadata=OF_CALENDAR)


class ProviderQuery(ConnectionQuery):
    """Which accounts to read."""

    provider = Several(Word(registry.names()), load_default=list, metadata=about("Only accounts of these."))


class CalendarIdsQuery(QuerySchema):
    """Which calendars of a user to read."""

    calendarIds = Several(
        PathText(longest=1024), load_default=list, validate=at_most(MAX_CALENDARS), metadata=CALENDAR_IDS
    )


class AllCalendarsQuery(QuerySchema):
    """Whether to read only the main calendars; by default, all."""

    primaryOnly = TrueOrFalse(load_default=False, metadata=PRIMARY_ONLY)


class MainCalendarsQuery(QuerySchema):
    """Whether to read only the main calendars; by default, these."""

    primaryOnly = TrueOrFalse(load_default=True, metadata=about("`false`: all calendars of each account."))


class MarginsQuery(QuerySchema):
    """What counts as free."""

    padding = IntegerText(least=0, most=MAX_MINUTES, load_default=NO_PADDING, metadata=PADDING)
    paddingBefore = IntegerText(least=0, most=MAX_MINUTES, metadata=PADDING_BEFORE)
    paddingAfter = IntegerText(least=0, most=MAX_MINUTES, metadata=PADDING_AFTER)
    maxOverlaps = IntegerText(least=0, most=MAX_OVERLAPS, load_default=0, metadata=OVERLAPS)
    minimumNotice = IntegerText(least=0, most=MAX_NOTICE, metadata=NOTICE)


class SlotShapeQuery(QuerySchema):
    """Where slots lie, and how many."""

    slotDuration = IntegerText(
        least=1, most=MAX_MINUTES, load_default=30, metadata=about("How long a slot is, in minutes.")
    )
    slotStep = IntegerText(
        least=1,
        most=MAX_MINUTES,
        metadata=about("Minutes between the starts of slots; default: `slotDuration`."),
    )
    align = Word(
        ALIGNMENTS,
        load_default="start",
        metadata=about("`clock`: slots start at multiples of `slotStep` on the local clock."),
    )
    limit = IntegerText(
        least=1,
        most=MAX_SLOTS_OF_A_USER,
        metadata=about("The most slots of each user, earliest first; default: all."),
    )
    earliestTimeEachDay = Clock(
        metadata=about("Local time at which the daily window opens. After its end: overnight.")
    )
    latestTimeEachDay = Clock(
        metadata=about("Local time at which the daily window closes; `00:00` is the end of the day.", "17:00")
    )

    def check(self, data: dict[str, Any]) -> None:
        """Equal times mean the whole day if both are midnight; otherwise they are an error."""
        super().check(data)
        earliest, latest = data.get("earliestTimeEachDay"), data.get("latestTimeEachDay")
        if earliest is not None and earliest == latest and earliest != 0:
            raise ValidationError("must differ from earliestTimeEachDay", "latestTimeEachDay")


class ProfileQuery(QuerySchema):
    """Whether what is stored of the users counts."""

    profile = Word((APPLY, IGNORE), load_default=APPLY, metadata=PROFILE)


class OrderQuery(QuerySchema):
    """The order of the users of a slot."""

    order = Word(
        (REQUEST, LEAST_BUSY),
        load_default=REQUEST,
        metadata=about(
            "`leastBusy`: users of one slot by how much they are booked in the seven days before and after "
            "its start, the least booked first."
        ),
    )


class FailureQuery(QuerySchema):
    """What to answer when a calendar could not be read."""

    onFailure = Word(
        ON_FAILURE,
        load_default="fail",
        metadata=about("`partial`: answer although some calendars could not be read."),
    )


_DECLARATIONS = (
    ProviderQuery,
    CalendarIdsQuery,
    MainCalendarsQuery,
    MarginsQuery,
    SlotShapeQuery,
    FailureQuery,
    ProfileQuery,
    OrderQuery,
)
# Every parameter that changes what a route reads, offers or books.
PARAMETERS = tuple(name for each in _DECLARATIONS for name in each().fields)

NOT_HERE = "must not be given here"
IN_ENTRY = "must be given in the entry of each user"
ALWAYS_PARTIAL = "must not be given here: users who cannot be read are always named beside the others"
READS_ALL = "must not be given here: a calendar that cannot be read always fails the request"


class ComposedQuery(QuerySchema):
    """The query of one route, composed of the declarations above: it refuses all their other parameters.

    ``ignored`` are parameters that mean nothing on the route; ``messages`` say more about a refusal.
    """

    ignored: ClassVar[frozenset[str]] = frozenset()
    messages: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        others = [each for each in PARAMETERS if each not in self.fields and each not in self.ignored]
        self.refused = {each: self.messages.get(each, NOT_HERE) for each in [*others, *self.messages]}


class ParametersInQuery(Body):
    """A body of a route whose parameters are in the query: it refuses parameters that it lacks.

    ``ignored`` and ``messages`` are as in ``ComposedQuery``.
    """

    ignored: ClassVar[frozenset[str]] = frozenset()
    messages: ClassVar[Mapping[str, str]] = {}

    @pre_load
    def parameters_are_in_the_query(self, data: Any, **_: Any) -> Any:
        """Refuse parameters that would have no effect in the body."""
        for name in PARAMETERS if isinstance(data, dict) else ():
            if data.get(name) is not None and name not in self.fields and name not in self.ignored:
                raise ValidationError(self.messages.get(name, "must be given in the query"), name)
        return data


# The highest `limit` of a list.
MAX_AT_ONCE = 1000
NEXT_CURSOR = about("`cursor` of the next page. Only with `limit` or `cursor`; null at the end.")


class PageQuery(Schema):
    """Optional paging."""

    limit = IntegerText(least=1, most=MAX_AT_ONCE, metadata=about(f"The longest page, 1 to {MAX_AT_ONCE}."))
    cursor = Text(longest=512, metadata=about("`nextCursor` of the page before."))


class LongCursorQuery(PageQuery):
    """Paging of a list whose cursors contain the long ids of providers."""

    cursor = Text(longest=16_384, metadata=about("`nextCursor` of the page before."))
