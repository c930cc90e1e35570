"""Answers busy and scheduling requests: which calendars, from the cache or from workers, and why a moment
is offered.

Imported by ``app.accounts``, ``app.api``, ``app.dashboard``, ``app.events``, ``app.openapi``,
``app.schemas``.
"""
