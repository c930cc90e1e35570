"""Microsoft Graph v1.0 calendars as a ``CalendarProvider``.

Imported by ``app.api``, ``app.schemas``, ``providers``, ``providers.sandbox``, ``workers.execution``.
"""
