"""Goal 23: slots of people with profiles, beside the same people without; both warm."""

from __future__ import annotations

from collections.abc import Callable

from store.sql.queries.availability_profiles import StoredProfile
from tests.benchmarks import calendars, in_turn, people
from tests.benchmarks.client import Answer
from tests.benchmarks.installation import Installation
from tests.benchmarks.questions import office, whole
from tests.benchmarks.report import Report
from tests.benchmarks.scale import Scale

MEMBERS = 1_000
SLUG = f"org-{MEMBERS}"
USER_CALLS = 200
ZONES = (
    "Europe/London",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Tokyo",
    "Asia/Kolkata",
    "America/Sao_Paulo",
)
EVERY_DAY = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WITH, WITHOUT = "with profiles", "without"
LIMIT, USER_LIMIT = 1.3, 1.1


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """With profiles the hours are those of each person; without, the same hours are in the request."""
    installation.state({person: profile(person) for person in range(MEMBERS)})
    try:
        with installation.running() as running:

            def asking(path: str) -> dict[str, Callable[[], Answer]]:
                return {
                    WITHOUT: lambda: running.client.get(path, {**office(7), "profile": "ignore"}),
                    WITH: lambda: running.client.get(path, whole(7)),
                }

            for what, path, calls, limit in (
                (
                    f"organization of {MEMBERS:,}",
                    f"/v1/organizations/{SLUG}/scheduling",
                    in_turn.CALLS_A_ROUND,
                    LIMIT,
                ),
                ("user", f"/v1/users/{people.name(0)}/scheduling", USER_CALLS, USER_LIMIT),
            ):
                contenders = asking(path)
                for name, call in contenders.items():
                    assert call().json()["data"]["options"].get("profile", False) == (name == WITH)
                compared = in_turn.compare("profiles", contenders, installation, scale, calls)
                compared.table(report, f"Slots of {what} over a week, from the cache", "hours")
                ratio = compared.ratio(report, WITH, WITHOUT)
                report.verdict(23, f"warm {what} with profiles, 7 days", WITHOUT, ratio, limit)
    finally:
        installation.state(dict.fromkeys(range(MEMBERS), StoredProfile()))


def profile(person: int) -> StoredProfile:
    """Nine to five in one of six zones, with a break and ten closed days after the week."""
    after = calendars.START + 30 * calendars.DAY
    closed = [calendars.text(after + (person % 7 + n) * calendars.DAY)[:10] for n in range(10)]
    return StoredProfile(
        time_zone=ZONES[person % len(ZONES)],
        schedules=[
            {"days": EVERY_DAY, "start": "09:00", "end": "13:00"},
            {"days": EVERY_DAY, "start": "13:00", "end": "17:00"},
        ],
        overrides=[{"date": day, "windows": []} for day in closed],
    )
