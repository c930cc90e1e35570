"""Google Calendar API v3 as a ``CalendarProvider``.

Imported by ``app.api``, ``providers``, ``workers.execution``.
"""
