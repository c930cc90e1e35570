"""The definition of subscribed calendars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.definition import Costs, Definition, Field, FormGuide, OwnSetting, Preset, Provider
from providers.ics.scopes import SCOPES

TITLE = "Calendar feed"

FORM = FormGuide(
    type="feed",
    fields=(
        Field(
            "url",
            "Address",
            "url",
            "The address of the feed, which begins with https:// or webcal:// and often ends with .ics. Who "
            "knows it can read the calendar, so it is stored encrypted and never shown",
        ),
    ),
    presets=(
        Preset(
            "Google Calendar",
            {},
            "In the settings of the calendar, under Integrate calendar, copy the secret address in iCal "
            "format",
        ),
        Preset(
            "Outlook",
            {},
            "In the settings, under Shared calendars, publish the calendar, and copy the ICS link",
        ),
        Preset(
            "iCloud",
            {},
            "In the sharing options of the calendar, switch on Public Calendar, and copy the link",
        ),
        Preset(
            "Airbnb",
            {},
            "In the calendar of the listing, under Availability, connect another website, and copy the link",
        ),
    ),
    renewal="Copy the address of the feed again, and enter it under Reconnect",
)


def bind(own: Mapping[str, Any]) -> Provider:
    """Feeds as an installation's settings allow them. Each account names its own server."""
    # The adapter and its libraries are loaded by the processes that call servers.
    from providers.ical.bounds import Limits
    from providers.ics.client import SubscribedCalendars
    from providers.ics.feeds import Feeds, FeedSettings
    from providers.ics.form import FeedForm

    allow_private = bool(own["allow_private"])
    limits = Limits(size=own["max_bytes"], components=own["max_components"])
    feeds = Feeds(FeedSettings(own["refresh_seconds"], limits, allow_private))
    calendars = SubscribedCalendars(feeds)
    form = FeedForm(feeds, allow_private=allow_private)
    return Provider(calendars=calendars, changes=calendars, form=form)


SETTINGS = (
    OwnSetting(
        "refresh_seconds",
        300,
        "The least seconds between two requests of one worker process to a calendar feed",
        minimum=0,
    ),
    OwnSetting("max_bytes", 10 * 1024 * 1024, "The most bytes of a calendar feed, unpacked", minimum=1024),
    OwnSetting(
        "max_components", 50_000, "The most events and other components of a calendar feed", minimum=1
    ),
    OwnSetting(
        "allow_private",
        False,
        "Allows calendar feeds at addresses of your own network, and by `http`. Leave it off if people who "
        "must not reach your internal network can connect accounts",
    ),
)

DEFINITION = Definition(
    name="ics",
    title=TITLE,
    service=TITLE,
    scopes=SCOPES,
    costs=Costs(calendars_of_events=1),
    bind=bind,
    form=FORM,
    settings=SETTINGS,
    floating=True,
)
