"""Microsoft Graph v1.0 calendars as a ``CalendarProvider``.

Imported by ``app.api``, ``providers``, ``workers.execution``.
"""
