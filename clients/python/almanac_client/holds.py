"""Holds: time of users that is kept free for a while."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from almanac_client.bodies import UserCalendars
from almanac_client.messages import Request, path
from almanac_client.operations import PAGE, Listing, Operation, data, nothing, rows
from almanac_client.parameters import When, body, headers, query
from almanac_client.records import Hold
from almanac_client.resources import Resource, TransportT, listing, operation
from almanac_client.words import ProfileUse, Provider


class Holds(Resource[TransportT]):
    """Time that no other client can hold or book, and that is not offered as a slot."""

    @listing
    def list(self, user: str | None = None, *, users: Sequence[str] = (), limit: int = PAGE) -> Listing[Hold]:
        """The holds of a user or of several, or of all whom the key reaches, by start, in pages of ``limit``.

        >>> [each.expires_at for each in almanac.holds.list("ada")]
        """
        return Listing(Request.get("/holds", query(user=user, users=list(users))), limit, rows(list[Hold]))

    @operation
    def create(
        self,
        users: Sequence[str | UserCalendars],
        *,
        start: When,
        end: When,
        expires_in: int | None = None,
        note: str | None = None,
        padding: int | None = None,
        padding_before: int | None = None,
        padding_after: int | None = None,
        max_overlaps: int | None = None,
        minimum_notice: int | None = None,
        profile: ProfileUse | None = None,
        provider: Sequence[Provider] = (),
        connection: Sequence[str] = (),
        zone: str | ZoneInfo | None = None,
        idempotency_key: str | None = None,
    ) -> Operation[Hold]:
        """Hold time of all users, or of none; for 300 seconds unless ``expires_in`` says otherwise.

        A user with ``calendar_ids`` has these read and held, instead of the main calendars.
        ``profile="ignore"``: the stored availability of the users does not count.

        ``provider`` and ``connection`` limit the accounts that are read.

        :raise Conflict: when the time is taken; its ``conflicts`` say when

        >>> hold = almanac.holds.create(["ada"], start=slot.start, end=slot.end)
        """
        request = Request.create(
            "/holds",
            body(
                users=users,
                start=start,
                end=end,
                expires_in=expires_in,
                note=note,
                padding=padding,
                padding_before=padding_before,
                padding_after=padding_after,
                max_overlaps=max_overlaps,
                minimum_notice=minimum_notice,
                profile=profile,
            ),
            query=query(provider=provider, connection=connection),
            headers={} if zone is None else headers({"zone": zone}),
            idempotency_key=idempotency_key,
        )
        return Operation(request, data(Hold))

    @operation
    def get(self, hold_id: str) -> Operation[Hold]:
        """A hold that has not expired.

        >>> almanac.holds.get(hold.id).expires_at
        """
        return Operation(Request.get(path("/holds/{}", hold_id)), data(Hold))

    @operation
    def release(self, hold_id: str) -> Operation[None]:
        """Release a hold.

        >>> almanac.holds.release(hold.id)
        """
        return Operation(Request("DELETE", path("/holds/{}", hold_id)), nothing)
