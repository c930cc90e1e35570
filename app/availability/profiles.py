"""What counts for people: their stored profiles, as the engine and the choice of calendars take them.

Profiles are cached with the connections of the users, under the same version.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from typing import Any

from app.availability import connections, public_holidays
from app.availability.parameters import ANY_HOURS, RangeTooLarge, RequestedHours, earliest_start, now_ms
from app.availability.selection import LISTS_SHARE, CalendarRequest, CalendarSelector
from app.http.authentication import Authentication
from app.schemas.availability import MAX_WINDOW_DAYS, WEEKDAYS
from app.schemas.parameters import APPLY, Unstated
from app.schemas.timestamps import EPOCH, MILLISECOND
from app.services import services
from providers.base import Failed
from providers.errors import Reason
from scheduling import hours as zoned
from scheduling.hours import Dates
from scheduling.query import Own, Query
from scheduling.windows import DAY, MINUTE, DateOverride, Window, zone_exists
from store.cache.busy_cache import CalendarKey
from store.sql.queries import availability_profiles, organizations
from store.sql.queries.availability_profiles import NOTHING, StoredProfile
from store.sql.queries.connection_rows import ConnectionRef
from workers.jobs import ListCalendars
from workers.queues import Queue

Span = tuple[int, int]

# The provider may tell the zone later. With any other reason it does not tell it.
UNANSWERED = frozenset({Reason.PROVIDER_ERROR, Reason.RATE_LIMITED})

NO_FAILURES: Mapping[str, Failed] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The profile of a user with these connections; ``zone`` is that of its windows and dates.

    ``zone_failed`` says why the zone could not be read. The hours are not known then.
    """

    stored: StoredProfile
    zone: str
    windows: tuple[Window, ...] | None = None
    overrides: tuple[DateOverride, ...] = ()
    calendars: tuple[CalendarKey, ...] = ()
    connections: tuple[ConnectionRef, ...] = ()
    zone_failed: Failed | None = None
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        stored: StoredProfile,
        refs: Sequence[ConnectionRef],
        failures: Mapping[str, Failed] = NO_FAILURES,
    ) -> Profile:
        """The profile of a user with these connections; ``failures``, by id, are of reads of their zones."""
        of_calendar, failed = ("UTC", None) if stored.time_zone else _zone_of_calendar(refs, failures)
        weekly = stored.schedules
        # Of a connection that was removed, no calendar counts.
        ids = {ref.public_id: ref.id for ref in refs}
        return cls(
            stored,
            stored.time_zone or of_calendar,
            None if weekly is None else tuple(map(_window, weekly)),
            tuple(map(_override, stored.overrides or ())),
            tuple(
                CalendarKey(ids[each["connectionId"]], each["calendarId"])
                for each in stored.calendars or ()
                if each["connectionId"] in ids
            ),
            tuple(refs),
            failed,
        )

    def hours(self, years: Span) -> tuple[zoned.Hours, ...]:
        """The hours in these years, the first to the last; empty if the profile states none."""
        found: tuple[zoned.Hours, ...] | None = self._known.get(years)
        if found is None:
            dates = (*self.overrides, *self.closed(years, self.overrides))
            hours = zoned.Hours(self.zone, self.windows, dates)
            found = self._known[years] = () if hours.are_any else (_shared(hours),)
        return found

    def closed(self, years: Span, overrides: Iterable[DateOverride] = ()) -> tuple[DateOverride, ...]:
        """The holidays in these years that have none of the overrides."""
        stated = {each.day for each in overrides}
        return tuple([DateOverride(day, ()) for day in self.holidays(years) if day not in stated])

    def holidays(self, years: Span) -> Mapping[date, str]:
        """The names of the holidays in these years."""
        country = self.stored.holiday_country
        if country is None:
            return {}
        key = "holidays", years
        if key not in self._known:
            self._known[key] = {
                day: name
                for year in range(years[0], years[1] + 1)
                for day, name in public_holidays.of_year(
                    country, self.stored.holiday_subdivision, year
                ).items()
            }
        found: Mapping[date, str] = self._known[key]
        return found


def _zone_of_calendar(
    refs: Sequence[ConnectionRef], failures: Mapping[str, Failed]
) -> tuple[str, Failed | None]:
    """The zone of the first main calendar that has one, and why that of an earlier one is not known."""
    for ref in refs:
        # The worker that stored a zone may have had other time zone data.
        if ref.time_zone and zone_exists(ref.time_zone):
            return ref.time_zone, None
        if ref.id in failures:
            return "UTC", failures[ref.id]
    return "UTC", None


# The engine resolves an object once, and most people of a company have the same hours.
@lru_cache(maxsize=4096)
def _shared(hours: zoned.Hours) -> zoned.Hours:
    return hours


def counting(profile: Profile | None, refs: Sequence[ConnectionRef]) -> tuple[CalendarKey, ...]:
    """The calendars that count by a profile for these connections of its user; none: the main ones count."""
    return calendars(CalendarRequest(refs, CalendarSelector()), profile).selector.counting


@dataclass(frozen=True, slots=True)
class Person:
    """A user with a profile, for sentences; ``hours`` are the hours in the request."""

    user: str
    profile: Profile
    hours: RequestedHours = ANY_HOURS


_NO_PROFILE = Profile(NOTHING, "UTC")


def of_user(authentication: Authentication, params: Mapping[str, Any], user: str) -> Profile | None:
    """The profile that counts for a user in a request; None without one."""
    return of_users(authentication, params, [user]).get(user)


def of_users(
    authentication: Authentication, params: Mapping[str, Any], users: Iterable[str]
) -> dict[str, Profile]:
    """The profiles that count in a request; users without one are left out."""
    if params.get("profile", APPLY) != APPLY:
        return {}
    cached = authentication.rows
    keys = {user: _cache_key(authentication, user) for user in users}
    known: dict[str, Profile | None] = {user: cached.get(key) for user, key in keys.items()}
    missing = [user for user, profile in known.items() if profile is None]
    if missing:
        with services().stores.database.reading() as session:
            loaded = availability_profiles.of_users(
                session, missing, organization_id=authentication.organization_id
            )
        found = connections.of_users(authentication, loaded) if loaded else {}
        made = _profiles(authentication, loaded, found)
        for user in missing:
            known[user] = profile = made.get(user, _NO_PROFILE)
            if profile.zone_failed is None:
                cached.put(keys[user], profile)
    return {user: each for user, each in known.items() if each is not None and each is not _NO_PROFILE}


def cached_of_user(authentication: Authentication, params: Mapping[str, Any], user: str) -> Profile | None:
    """The profile of a user from the cache of this process only.

    :raise LookupError: when it is not cached
    """
    if params["profile"] != APPLY:
        return None
    found: Profile | None = authentication.rows.get(_cache_key(authentication, user))
    if found is None:
        raise LookupError(user)
    return None if found is _NO_PROFILE else found


def of_members(authentication: Authentication, params: Mapping[str, Any], slug: str) -> Mapping[str, Profile]:
    """The profiles that count for the members of an organization; members without one are left out.

    :raise NotFound: for an organization that the key does not reach
    """
    if params.get("profile", APPLY) != APPLY:
        return {}
    key = "profiles", slug, authentication.organization_id
    known: Mapping[str, Profile] | None = authentication.rows.get(key)
    if known is not None:
        return known
    members = connections.of_members(authentication, slug)
    with services().stores.database.reading() as session:
        found = organizations.ids(session, [slug], organization_id=authentication.organization_id)
        loaded = availability_profiles.of_members(session, found[slug]) if found else {}
    made = _profiles(authentication, loaded, members)
    if all(each.zone_failed is None for each in made.values()):
        authentication.rows.put(key, made, 1 + len(made))
    return made


def _profiles(
    authentication: Authentication,
    loaded: Mapping[str, StoredProfile],
    refs_of: Mapping[str, Sequence[ConnectionRef]],
) -> dict[str, Profile]:
    """The profiles of users with these connections, with the zones of their calendars where hours need them.

    Hours without a zone count in that of the calendar. Before a first list of calendars it is not known, and
    the hours would count in UTC: the accounts are then listed first, with which workers store the zone.
    """
    failures: dict[str, Failed] = {}
    unknown = {
        ref.id: ref
        for user, stored in loaded.items()
        if stored.time_zone is None and stored.has_dates
        for ref in refs_of.get(user, ())
        if not connections.is_zone_settled(ref)
    }
    found = connections.identified(authentication, unknown.values()) if unknown else {}
    if missing := [ref for each, ref in unknown.items() if each not in found]:
        deadline = time.monotonic() + services().settings.fanout_deadline_seconds * LISTS_SHARE
        jobs = [ListCalendars(ref.id) for ref in missing]
        replies = services().fanout.gather(jobs, queue=Queue.READS, deadline=deadline)
        found |= connections.identified(authentication, missing)
        for ref, reply in zip(missing, replies, strict=True):
            if ref.id not in found and reply.failed is not None and reply.failed.reason in UNANSWERED:
                failures[ref.id] = reply.failed
    return {
        user: Profile.of(stored, [found.get(ref.id, ref) for ref in refs_of.get(user, ())], failures)
        for user, stored in loaded.items()
    }


def _cache_key(authentication: Authentication, user: str) -> tuple[str, str, int | None]:
    return "profile", user, authentication.organization_id


def calendars(calendar_request: CalendarRequest, profile: Profile | None) -> CalendarRequest:
    """The calendars to read for a user: the ones of the profile, unless the request names others.

    Where the request narrows the connections to some without a calendar that counts, or those of the profile
    were removed, the main calendars count: something is read always. If the zone of the hours could not be
    read, the calendars fail with the same failure.
    """
    if profile is None:
        return calendar_request
    refs, selector = calendar_request
    counting = {connection for connection, _ in profile.calendars}
    if not selector.ids and selector.primary_only and (some := [ref for ref in refs if ref.id in counting]):
        refs, selector = some, replace(selector, counting=profile.calendars)
    if profile.zone_failed is not None:
        selector = replace(selector, failed=profile.zone_failed)
    return CalendarRequest(refs, selector)


def query_of_user(
    params: Mapping[str, Any], query: Query, hours: RequestedHours, profile: Profile | None
) -> Query:
    """The query for a user with a profile; ``query`` has the ``hours`` of the request.

    :raise RangeTooLarge: for more windows than can be computed
    """
    if profile is None:
        return query
    own = terms(params, query, hours, profile, now_ms())
    check_windows(query, [own])
    return query.of_member(own)


def queries_of_users(
    params: Mapping[str, Any],
    queries: Sequence[Query],
    hours: Sequence[RequestedHours],
    users: Sequence[str],
    profiles: Mapping[str, Profile],
) -> list[Query]:
    """The query for each of several users; ``queries`` have the ``hours`` of each in the request.

    :raise RangeTooLarge: for more windows than can be computed
    """
    if not profiles:
        return list(queries)
    now = now_ms()
    own = [
        terms(params, query, each, profiles[user], now) if user in profiles else None
        for query, each, user in zip(queries, hours, users, strict=True)
    ]
    if queries:
        check_windows(queries[0], own)
    return [query.of_member(each) for query, each in zip(queries, own, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """The profiles of the users of a request, and what the request states itself, which wins.

    ``params`` are the parameters of the request, ``query`` the search without profiles, ``profiles`` those of
    the users who have one.
    """

    params: Mapping[str, Any]
    query: Query
    profiles: Mapping[str, Profile]
    hours: RequestedHours = ANY_HOURS
    now: int = field(default_factory=lambda: now_ms())

    def of(self, users: Sequence[str]) -> list[Own | None] | None:
        """What differs for each of these users from the query; None if no profile counts for any of them.

        :raise RangeTooLarge: for more windows than can be computed
        """
        if not any(user in self.profiles for user in users):
            return None
        own = [self.of_user(user) for user in users]
        check_windows(self.query, own)
        return own

    def person(self, user: str) -> Person | None:
        """A user with a profile; None without one."""
        profile = self.profiles.get(user)
        return None if profile is None else Person(user, profile, self.hours)

    def of_user(self, user: str) -> Own | None:
        """What differs for a user from the query; None without a profile."""
        profile = self.profiles.get(user)
        return None if profile is None else terms(self.params, self.query, self.hours, profile, self.now)


def terms(params: Mapping[str, Any], query: Query, hours: RequestedHours, profile: Profile, now: int) -> Own:
    """The terms of a query with a profile. ``hours`` are those of the request; ``now`` in milliseconds."""
    stored = profile.stored
    not_before = query.not_before
    if "minimumNotice" not in params and stored.minimum_notice is not None:
        not_before = earliest_start(stored.minimum_notice, now)
    return Own(
        _hours(query, hours, profile),
        _padding(params, "paddingBefore", query.padding_before, stored.padding_before),
        _padding(params, "paddingAfter", query.padding_after, stored.padding_after),
        not_before,
    )


def _padding(params: Mapping[str, Any], name: str, of_query: int, stored: int | None) -> int:
    stated = name in params or not isinstance(params["padding"], Unstated)
    return of_query if stated or stored is None else stored * MINUTE


def _hours(query: Query, hours: RequestedHours, profile: Profile) -> tuple[zoned.Hours, ...]:
    """The hours of a person: the windows and dates of the profile, unless the request states them."""
    years = years_of(query)
    if not hours.are_given:
        return profile.hours(years)
    requested = query.hours[0] if query.hours else zoned.Hours(query.zone, query.windows, query.overrides)
    if hours.schedules is None:
        closed = profile.closed(years)
        dates = Dates(requested.zone, requested.overrides)
        return (zoned.Hours(profile.zone, profile.windows, closed, dates),)
    if hours.overrides is None:
        replaced = (*profile.overrides, *profile.closed(years, profile.overrides))
    else:
        replaced = profile.closed(years, requested.overrides)
    return (replace(requested, replaced=Dates(profile.zone, replaced) if replaced else None),)


def check_windows(query: Query, own: Sequence[Own | None]) -> None:
    """Limit the windows of profiles as those of a request.

    :raise RangeTooLarge: above the limit
    """
    days = -(-(query.end - query.start) // DAY)
    windows = dates = 0
    for terms in own:
        for each in terms.hours if terms is not None else ():
            windows += 1 if each.windows is None else len(each.windows)
            dates += len(each.overrides)
    if windows * days + dates > MAX_WINDOW_DAYS:
        raise RangeTooLarge(
            f"The availability of the users has {windows} windows over {days} days, and windows times days "
            f"must not exceed {MAX_WINDOW_DAYS}; narrow the range, or ask for fewer users"
        )


def years_of(query: Query) -> Span:
    """The first and the last year that a local date in the range of a query may have."""
    return _years(query.start, query.end)


# Each member with a profile needs the years of the same range.
@lru_cache(maxsize=256)
def _years(start: int, end: int) -> Span:
    first, last = (EPOCH + at * MILLISECOND for at in (start - DAY, end + DAY))
    return first.year, last.year


def _window(stored: Mapping[str, Any]) -> Window:
    start, end = _edges(stored)
    return Window(frozenset(WEEKDAYS.index(day) for day in stored["days"]), start, end)


def _override(stored: Mapping[str, Any]) -> DateOverride:
    return DateOverride(date.fromisoformat(stored["date"]), tuple(map(_edges, stored["windows"])))


def _edges(stored: Mapping[str, Any]) -> tuple[int, int]:
    """The minutes of a window; 00:00 is the end of the day."""
    start, end = (int(stored[edge][:2]) * 60 + int(stored[edge][3:]) for edge in ("start", "end"))
    return start, end or 1440
