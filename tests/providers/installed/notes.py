"""A provider of forty lines: the busy periods of a person in a JSON document at an address."""

from providers.base import Calendar, MainCalendar, Read, Token
from providers.definition import Definition, Field, FormGuide, OpenedAccount, Provider
from providers.errors import AuthorizationInvalid, FieldRefused, NotFound, Unavailable
from providers.http.calls import Bearer, Call, Reach
from providers.http.send import send
from providers.scopes import Level, one_scope

ERRORS = {401: (AuthorizationInvalid, "Notes does not know you"), 404: (NotFound, "There is no such note")}


def read(url, deadline, bearer=None):
    # A person enters the address. A real provider has PUBLIC, unless a setting allows private networks.
    call = Call("Notes", "calendar.freebusy.query", "GET", url, reach=Reach.ANY)
    return send(call, error, deadline=deadline, bearer=bearer)


def error(reply):
    kind, text = ERRORS.get(reply.status, (Unavailable, "Notes is down"))
    return kind(text)


class Notes:
    name = "notes"

    def calendars(self, account, *, deadline):
        return [Calendar("main", "notes", "My note", "reader", True, True, "#039be5", "#000000", "UTC", {})]

    def busy(self, account, calendar_ids, start, end, *, deadline):
        url = account.tokens.access_token(deadline=deadline).reveal
        periods = read(url, deadline, Bearer.of(account))["busy"]
        return Read.of_each(dict.fromkeys(calendar_ids, periods), start, end)

    def open(self, values, main_calendars, *, reconnects=None, deadline):
        try:
            email = read(values["url"], deadline)["email"]
        except NotFound as error:
            raise FieldRefused("url", "leads to no note") from error
        return OpenedAccount(email, email, Token(values["url"]), ("read",), MainCalendar("main", ""))


FORM, SCOPES = FormGuide("feed", (Field("url", "Address", "url"),)), one_scope("read", Level.FREE_BUSY)
BOUND = Provider(Notes(), form=Notes())
DEFINITION = Definition("notes", "Notes", "Notes", SCOPES, bind=lambda own: BOUND, form=FORM)
