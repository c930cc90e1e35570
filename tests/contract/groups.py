"""The rows of slots that groups share, and of their explanations."""

from __future__ import annotations

from tests.contract.calendars import MORNING, SCHEDULES, TOKYO, microsoft_down, no_members
from tests.contract.rows import MISSING, Row, bad, of, ok
from tests.contract.shapes import ERROR, FAILED_USER, GROUP_EXPLAINED, SHARED_SLOTS, data
from tests.contract.world import World

GROUPS = {"participants": [{"users": ["{userId}", "{lonely}"], "required": 1}, {"organization": "{orgSlug}"}]}
AT = {"at": "2026-12-03T09:10:00Z"}


def nowhere(message: str, **more: object) -> Row:
    """The organization of the body does not exist, or has no members."""
    return bad(message, 404, MISSING[message], shape=ERROR, **more)


def rows(operation: str, query: dict[str, str], shape: dict[str, object]) -> tuple[Row, ...]:
    """The rows of slots or of explanations, whose errors are the same."""
    elsewhere = {"participants": [{"organization": "nowhere"}]}
    return tuple(
        of(
            operation,
            ok(data(shape, failedUsers=[FAILED_USER]), query=query, body=GROUPS),
            ok(data(shape, failedUsers=[FAILED_USER]), query=query, body=GROUPS | SCHEDULES, headers=TOKYO),
            ok(data(shape, failedUsers=[FAILED_USER]), query=query, body=GROUPS, setup=World.revoke),
            ok(
                data(shape, failedUsers=[FAILED_USER]),
                query=query | {"onFailure": "partial"},
                body=GROUPS,
                setup=microsoft_down,
            ),
            bad("participants is required", query=query, body={}),
            bad("participants must have 1 to 10", query=query, body={"participants": []}),
            bad(
                "participants[0].required must be at most 1",
                query=query,
                body={"participants": [{"users": ["ada"], "required": 2}]},
            ),
            bad("start is required", query=AT | {"end": "2026-12-04"}, body=GROUPS),
            nowhere("Organization not found", query=query, body=elsewhere),
            nowhere("Organization has no members", query=query, body=GROUPS, setup=no_members),
        )
    )


ROWS: tuple[Row, ...] = (
    *rows("POST /scheduling", MORNING, SHARED_SLOTS),
    *rows("POST /scheduling/explain", MORNING | AT, GROUP_EXPLAINED),
    *of("POST /scheduling/explain", bad("at is required", query=MORNING, body=GROUPS)),
)
