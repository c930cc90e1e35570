"""Answers busy and scheduling requests: which calendars, from the cache or from workers, and why a moment
is offered.

Imported by ``app.api`` and ``app.dashboard``.
"""
