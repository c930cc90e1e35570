"""Busy and scheduling requests: select the calendars, look up their busy periods in the cache or through
workers, and explain why a moment is or is not offered.

Imported by ``app.accounts``, ``app.api``, ``app.dashboard``, ``app.events``, ``app.observability``,
``app.openapi``, ``app.schemas``.
"""
