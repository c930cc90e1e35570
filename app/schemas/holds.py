"""Schemas of holds, and of the conditions of event creates and moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, fields, validate

from app.schemas.availability import UserCalendarsSchema
from app.schemas.events import SCOPE
from app.schemas.fields import (
    EXAMPLES,
    HOLD_ID,
    USER_ID,
    Identifier,
    Instant,
    JsonInteger,
    Reference,
    Several,
    Text,
    TrueOrFalse,
    Word,
    about,
    given,
)
from app.schemas.parameters import (
    APPLY,
    CONNECTION,
    IGNORE,
    IN_ENTRY,
    MAX_CONNECTION_ID,
    MAX_MINUTES,
    MAX_NOTICE,
    MAX_OVERLAPS,
    NOTICE,
    OF_CALENDAR,
    OVERLAPS,
    PADDING,
    PADDING_AFTER,
    PADDING_BEFORE,
    PROFILE,
    READS_ALL,
    CalendarConnectionQuery,
    CalendarIdsQuery,
    ComposedQuery,
    LongCursorQuery,
    MarginsQuery,
    ParametersInQuery,
    ProfileQuery,
    ProviderQuery,
)
from providers.events import Scope
from scheduling.json_render import timestamp
from store.sql.queries.webhook_events import HoldView

# A hold locks the rows of its users, and reads all of them at once.
MAX_USERS = 100
MAX_NOTE = 256
# In seconds.
MIN_LIFE, USUAL_LIFE, MAX_LIFE = 30, 300, 3600

START = about("Where the held time begins, ISO 8601.", "2026-12-03T09:00:00Z")
END = about(
    "Where it ends, not included; at most 24 hours after `start`, and not in the past.",
    "2026-12-03T09:30:00Z",
)
NOTE = about("A text of your own, which only `GET` shows.", "cart 4711")


class ConditionQuery(MarginsQuery, ProfileQuery, ComposedQuery):
    """What counts as free, as for slots."""

    messages: ClassVar[Mapping[str, str]] = {"onFailure": READS_ALL}


class HoldQuery(ProviderQuery, ConditionQuery):
    """What counts as free, and the accounts to read."""

    messages: ClassVar[Mapping[str, str]] = {"onFailure": READS_ALL, "calendarIds": IN_ENTRY}


class HeldUser(fields.Field[Any]):
    """The id of a user, or an object of ``UserCalendarsSchema``."""

    schema = UserCalendarsSchema()

    def __init__(self) -> None:
        user = {"type": "string", "examples": [EXAMPLES[USER_ID]]}
        super().__init__(metadata={"oneOf": [user, {"$ref": "#/components/schemas/UserCalendars"}]})

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, str):
            value = {"id": value}
        if not isinstance(value, dict):
            raise ValidationError("must be the id of a user, or an object with it")
        return self.schema.load(value)


class HoldBody(ParametersInQuery):
    """The time to hold."""

    messages: ClassVar[Mapping[str, str]] = HoldQuery.messages

    users = fields.List(
        HeldUser(),
        required=True,
        validate=validate.Length(min=1, max=MAX_USERS, error="must have {min} to {max} elements"),
        metadata=about(
            "The users whose time is held, all of them or none: an id, or an object with `id` "
            "and the `calendarIds` that are read and held instead of the main calendars.",
            ["ada", {"id": "bruno", "calendarIds": ["room-1@resource.example.com"]}],
        ),
    )
    start = Instant(required=True, metadata=START)
    end = Instant(required=True, metadata=END)
    expiresIn = JsonInteger(
        least=MIN_LIFE,
        most=MAX_LIFE,
        load_default=USUAL_LIFE,
        metadata=about("After how many seconds the hold expires."),
    )
    note = Text(longest=MAX_NOTE, load_default=None, allow_none=True, metadata=NOTE)
    padding = JsonInteger(least=0, most=MAX_MINUTES, metadata=PADDING)
    paddingBefore = JsonInteger(least=0, most=MAX_MINUTES, metadata=PADDING_BEFORE)
    paddingAfter = JsonInteger(least=0, most=MAX_MINUTES, metadata=PADDING_AFTER)
    maxOverlaps = JsonInteger(least=0, most=MAX_OVERLAPS, metadata=OVERLAPS)
    minimumNotice = JsonInteger(least=0, most=MAX_NOTICE, metadata=NOTICE)
    profile = Word((APPLY, IGNORE), metadata=PROFILE)


class HoldsQuery(LongCursorQuery):
    """Whose holds to list."""

    user = Reference(USER_ID, metadata=about("Only the holds of this user."))
    users = Several(Reference(USER_ID), metadata=about("Only the holds of at least one of these users."))


class HoldSchema(Schema):
    """Time of users that is kept free."""

    id = Identifier(HOLD_ID, required=True, metadata=about("The id of the hold."))
    users = fields.List(fields.String(), required=True, metadata=about("The users, by id.", ["ada"]))
    start = fields.String(required=True, metadata={**START, "format": "date-time"})
    end = given(fields.String, "Where it ends, not included.", "2026-12-03T09:30:00.000Z", format="date-time")
    expiresAt = given(
        fields.String,
        "When the time is free again. While an event is being created by the hold, it may "
        "be later than at first.",
        "2026-11-20T09:05:00.000Z",
        format="date-time",
    )
    note = fields.String(metadata=NOTE)


class CreateQuery(CalendarIdsQuery, ProviderQuery, ConditionQuery):
    """The condition of a create: that its time is free, or held for it.

    ``connection`` names the account of the event, and does not limit the calendars that must be free.
    """

    connection = Several(Text(longest=MAX_CONNECTION_ID), load_default=list, metadata=OF_CALENDAR)

    ifFree = TrueOrFalse(
        load_default=False,
        metadata=about(
            "Create the event only if its time is free, by a new read, while no other "
            "request can take it. Otherwise 409 `slotTaken`. Not with `recurrence`."
        ),
    )
    hold = Reference(
        HOLD_ID,
        metadata=about(
            "Create the event only if this hold of the user covers its time; the hold is "
            "then used up. Otherwise 409 `slotTaken`."
        ),
    )

    def check(self, data: dict[str, Any]) -> None:
        """Reject two conditions at once."""
        super().check(data)
        if data.get("ifFree") and "hold" in data:
            raise ValidationError("must not be given together with ifFree", "hold")


class MoveQuery(CalendarConnectionQuery, ConditionQuery):
    """The condition of an update that gives an event another time: that this is free."""

    messages: ClassVar[Mapping[str, str]] = {
        **ConditionQuery.messages,
        "hold": "must not be given for an update",
    }

    ifFree = TrueOrFalse(
        load_default=False,
        metadata=about(
            "Move the event only if its new time is free, by a new read, while no other "
            "request can take it. The time that the event has now counts as free. Otherwise 409 `slotTaken`. "
            "Not with `recurrence`, and not with another `scope` than `occurrence`."
        ),
    )
    scope = Word(tuple(Scope), load_default=Scope.OCCURRENCE, metadata=SCOPE)

    def check(self, data: dict[str, Any]) -> None:
        """Reject a move of several occurrences to time of which one slot is checked."""
        super().check(data)
        if data.get("ifFree") and data.get("scope") != Scope.OCCURRENCE:
            raise ValidationError(
                "must not be given with scope: only one occurrence can be checked", "ifFree"
            )


class UnifiedCreateQuery(CreateQuery):
    """The condition of a unified create, and its accounts."""

    connection = Several(Text(longest=MAX_CONNECTION_ID), load_default=list, metadata=CONNECTION)


def hold_view(hold: HoldView) -> Mapping[str, Any]:
    """A hold for ``HoldSchema``."""
    return {
        "id": hold.id,
        "users": list(hold.users),
        "start": timestamp(hold.starts),
        "end": timestamp(hold.ends),
        "expiresAt": timestamp(hold.expires_at),
        **({} if hold.note is None else {"note": hold.note}),
    }
