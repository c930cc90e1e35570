"""Redis caches: busy periods, lists of calendars, and what a process keeps of the database.

Imported by ``app`` and ``workers``.
"""
