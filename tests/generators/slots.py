"""Calls Almanac with the Python client generated from its OpenAPI document."""

from __future__ import annotations

import json
import sys

from generated import AuthenticatedClient
from generated.api.scheduling import list_user_slots
from generated.api.users import get_user
from generated.models import GetUserError, OnFailure, Provider, SlotAlignment, UserSlotsAnswer
from generated.types import Unset

base_url, key, user_id = sys.argv[1:]
client = AuthenticatedClient(base_url=base_url, token=key)
answer = list_user_slots.sync(
    user_id,
    client=client,
    start="2026-12-03T09:00",
    end="2026-12-03T12:00",
    slot_duration=60,
    provider=[Provider.GOOGLE, Provider.MICROSOFT],
    align=SlotAlignment.CLOCK,
    on_failure=OnFailure.PARTIAL,
)
assert isinstance(answer, UserSlotsAnswer), answer
refused = get_user.sync("nobody-at-all", client=client)
assert isinstance(refused, GetUserError), refused
unread = answer.failed_calendars
told = {
    "starts": [slot.start.isoformat() for slot in answer.data.available_slots],
    "unread": [] if isinstance(unread, Unset) else [calendar.reason.value for calendar in unread],
    "refused": refused.error,
}
sys.stdout.write(json.dumps(told))
