"""Google Calendar API v3 as a ``CalendarProvider``.

Imported by ``app.api``, ``app.availability``, ``providers``, ``providers.oauth``, ``workers.execution``.
"""
