"""The definition of CalDAV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.base import Token
from providers.caldav.credentials import opened
from providers.caldav.scopes import SCOPES
from providers.definition import Costs, Definition, Field, FormGuide, OwnSetting, Preset, Provider
from providers.event_writes import ALL_SHOWN, MAX_REMINDERS, EventFields
from providers.events import Visibility

TITLE = "CalDAV"


def shown(stored: Token) -> dict[str, str]:
    """The address and the user name of an account."""
    known = opened(stored)
    return {"url": known.url, "username": known.username}


FORM = FormGuide(
    type="basic",
    fields=(
        Field(
            "url",
            "Address",
            "url",
            "The address of the CalDAV server, of the account there, or of one calendar",
        ),
        Field("username", "User name", "text", "The name with which the account is signed in at the server"),
        Field(
            "password",
            "Password",
            "password",
            "An app password where the server has such passwords. It is stored encrypted and never shown",
        ),
    ),
    presets=(
        # https://support.apple.com/102654
        Preset(
            "iCloud",
            {"url": "https://caldav.icloud.com/"},
            "The user name is the e-mail address of the Apple Account. Make an app-specific password at "
            "https://account.apple.com under Sign-In and Security. The password of the account does not work",
        ),
        # https://www.fastmail.help/hc/en-us/articles/1500000278342
        Preset(
            "Fastmail",
            {"url": "https://caldav.fastmail.com/"},
            "The user name is the whole address. Make an app password with access to calendars in the "
            "settings, under Privacy & Security",
        ),
        # https://docs.nextcloud.com/server/latest/user_manual/en/groupware/calendar.html
        Preset(
            "Nextcloud",
            {"url": "https://HOST/remote.php/dav"},
            "Replace HOST by the address of the Nextcloud. Make an app password in the personal settings, "
            "under Security",
        ),
        # https://kb.mailbox.org/en/private/calendar/
        Preset(
            "mailbox.org",
            {"url": "https://dav.mailbox.org/"},
            "The user name is the whole address. With two-factor authentication, make an application "
            "password in the settings",
        ),
        # https://radicale.org
        Preset("Radicale", {"url": "https://HOST/"}, "Replace HOST by the address of the Radicale server"),
    ),
    renewal="Make a new app password, or take the new password of the account, and enter it under Reconnect",
    shown=shown,
)


def bind(own: Mapping[str, Any]) -> Provider:
    """CalDAV as an installation's settings allow it. Each account names its own server."""
    # The adapter and its libraries are loaded by the processes that call servers.
    from providers.caldav.client import CalDav
    from providers.caldav.form import AccountForm

    allow_private = bool(own["allow_private"])
    calendars = CalDav(allow_private=allow_private)
    form = AccountForm(allow_private=allow_private)
    return Provider(calendars=calendars, writes=calendars, changes=calendars, form=form)


SETTINGS = (
    OwnSetting(
        "allow_private",
        False,
        "Allows CalDAV servers at addresses of your own network, and by `http`. Leave it off if people who "
        "must not reach your internal network can connect accounts",
    ),
)

DEFINITION = Definition(
    name="caldav",
    title=TITLE,
    service=TITLE,
    scopes=SCOPES,
    # An event is found by its UID, then read or written.
    costs=Costs(event=2, calendars_of_events=10),
    bind=bind,
    form=FORM,
    settings=SETTINGS,
    floating=True,
    event_fields=EventFields(
        show_as=ALL_SHOWN, visibility=tuple(Visibility), reminders=MAX_REMINDERS, optional_resources=True
    ),
)
