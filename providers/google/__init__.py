"""Google Calendar API v3 as a ``CalendarProvider``."""

from providers.timestamps import DAY

# Maximum of calendars in one freeBusy query (calendarExpansionMax):
# https://developers.google.com/workspace/calendar/api/v3/reference/freebusy/query
CALENDARS_PER_QUERY = 50
# Google documents no maximum range for freeBusy and rejects ranges of somewhat over three months.
RANGE_PER_QUERY = 60 * DAY
