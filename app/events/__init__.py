"""Reads and writes events and calendars for one request.

Imported by ``app.api``, ``app.dashboard``.
"""
