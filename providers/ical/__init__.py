"""Calendars as iCalendar text (RFC 5545): from bytes to busy periods and events.

``calendar.read`` parses, ``busy.busy_periods`` and ``events.events`` expand series. What cannot be read never
becomes free time: an event blocks its stated time, or the calendar fails (``bounds.InvalidCalendar``).
"""
