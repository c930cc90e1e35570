"""Schemas of group availability: when enough members of each group are free together."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from app.schemas.availability import MAX_USERS, OwnZone, SchedulesBody, SlotsQuery
from app.schemas.availability_answers import FAILED_USERS, OPTIONS, USER, OptionsSchema, SlotSchema
from app.schemas.errors import FailedUserSchema
from app.schemas.explain import AT, MemberExplainedSchema, MomentQuery
from app.schemas.fields import (
    SLUG,
    USER_ID,
    Reference,
    Timestamp,
    WholeBody,
    Word,
    about,
    given,
    json_integer,
    list_of,
)
from app.schemas.parameters import ALIGNMENTS, ON_FAILURE, OrderQuery
from scheduling.explain import Verdict

MAX_GROUPS = 10
ALL = "all"

NOT_ENOUGH_FREE = "notEnoughFree"
# The verdicts of the engine that only busy time causes.
_OF_BUSY_TIME = (Verdict.BUSY, Verdict.PADDING, Verdict.TOO_MANY_OVERLAPS)
# All other verdicts of the engine, and the one that only groups have.
GROUP_REASONS = (*(verdict for verdict in Verdict if verdict not in _OF_BUSY_TIME), NOT_ENOUGH_FREE)


class GroupSlotsQuery(OrderQuery, SlotsQuery):
    """Slots that groups share."""

    align = Word(
        ALIGNMENTS,
        load_default="clock",
        metadata=about("`clock`: shared slots start at multiples of `slotStep` on the local clock."),
    )
    onFailure = Word(
        ON_FAILURE,
        load_default="fail",
        metadata=about("`partial`: `required: all` means all members whose calendars could be read."),
    )

    def check(self, data: dict[str, Any]) -> None:
        """Slots of different users can be shared only if they start at the same times."""
        super().check(data)
        if data["align"] != "clock":
            raise ValidationError("must be clock: users share slots only on one grid", "align")


class GroupMomentQuery(MomentQuery, GroupSlotsQuery):
    """A moment of groups."""


class Required(fields.Field[Any]):
    """``all``, or the number of members of a group that have to be free."""

    def __init__(self, **options: Any) -> None:
        shape = {
            "oneOf": [
                {"type": "string", "const": ALL},
                {"type": "integer", "minimum": 1, "maximum": MAX_USERS},
            ],
            "description": "How many of the group have to be free for the whole slot.",
        }
        super().__init__(metadata=shape, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if value == ALL:
            return None
        number = json_integer(value)
        if number is None or not 1 <= number <= MAX_USERS:
            raise ValidationError(f"must be all, or an integer from 1 to {MAX_USERS}")
        return number


class GroupSchema(SchedulesBody, OwnZone):
    """A group: users, or all members of an organization.

    Its own schedules and overrides replace those of the request. A user in several groups is free in the
    windows of all of them only.
    """

    users = fields.List(
        Reference(USER_ID),
        validate=validate.Length(min=1, max=MAX_USERS, error="must have 1 to {max} elements"),
        metadata=about("The ids of the users.", ["ada", "bruno"]),
    )
    organization = Reference(SLUG, metadata=about("All members of this organization, instead."))
    required = Required(load_default=None)

    @validates_schema
    def has_members(self, data: dict[str, Any], **_: Any) -> None:
        """A group names its members in exactly one way."""
        users, organization = data.get("users"), data.get("organization")
        if (users is None) == (organization is None):
            raise ValidationError("must name either users or an organization", "users")
        required = data["required"]
        if users is not None and required is not None and required > (size := len(set(users))):
            raise ValidationError(f"must be at most {size}, the size of the group", "required")


class GroupsBody(SchedulesBody):
    """Groups, and the windows in which they may meet."""

    participants = fields.List(
        fields.Nested(GroupSchema),
        required=True,
        validate=validate.Length(min=1, max=MAX_GROUPS, error="must have 1 to {max} elements"),
        metadata=about(f"The groups, with at most {MAX_USERS} users together. A user may be in several."),
    )


class SharedSlotSchema(SlotSchema):
    """A slot in which enough members of every group are free."""

    users = fields.List(
        fields.String(),
        required=True,
        metadata=about(
            "The ids of all users who are free for the whole slot, in the order of the request.",
            ["ada", "bruno"],
        ),
    )


class GroupSlotsSchema(Schema):
    """The slots that all groups share."""

    availableSlots = list_of(SharedSlotSchema, about("By `start`."))
    options = fields.Nested(OptionsSchema, required=True, metadata=OPTIONS)


class GroupSlotsAnswer(WholeBody):
    """The slots that all groups share, and the users who could not be read."""

    data = fields.Nested(GroupSlotsSchema, required=True)
    failedUsers = list_of(FailedUserSchema, FAILED_USERS)


class MissingUserSchema(MemberExplainedSchema):
    """A user who is not free for the whole slot, and why."""

    at = given(
        Timestamp,
        "The first moment of the slot at which the user is not free; the explanation is about it.",
        "2026-11-20T09:10:00.000Z",
    )


class ExplainedGroupSchema(Schema):
    """The users of a group who are free for the whole slot, and the missing ones."""

    required = given(fields.Integer, "How many of the group have to be free.", 2)
    free = fields.List(
        fields.String(metadata=USER),
        required=True,
        metadata=about("The ids of the users who are free for the whole slot."),
    )
    missing = list_of(MissingUserSchema, about("The other users of the group, each with the reason."))


class GroupExplainedSchema(Schema):
    """Why a moment is, or is not, in a slot that all groups share."""

    at = Timestamp(required=True, metadata=AT)
    offered = given(fields.Boolean, "Whether some shared slot holds the moment, its end not included.")
    reason = Word(GROUP_REASONS, required=True, metadata=about("The verdict; the set is closed."))
    sentence = given(
        fields.String,
        "The same for people, in the zone of the request.",
        "10:10 on Thursday 3 December 2026 (UTC) is not offered: in the slot from 10:00 to 10:30, 1 is free, "
        "and 2 required.",
    )
    slot = fields.Nested(
        SlotSchema,
        required=True,
        allow_none=True,
        metadata=about(
            "The slot around the moment that `groups` is about: of several, the one that "
            "most groups share, then the earliest. Null if no slot may hold the moment."
        ),
    )
    groups = list_of(
        ExplainedGroupSchema,
        about("One entry for each group, in the order of the request; none without a slot."),
    )
    options = fields.Nested(OptionsSchema, required=True, metadata=OPTIONS)


class GroupExplainedAnswer(WholeBody):
    """The explanation for groups, and the users who could not be read."""

    data = fields.Nested(GroupExplainedSchema, required=True)
    failedUsers = list_of(FailedUserSchema, FAILED_USERS)
