"""Redis caches: busy periods, lists of calendars, and what a process keeps of the database.

Imported by ``app.accounts``, ``app.availability``, ``app.dashboard``, ``app.events``, ``app.http``,
``store``, ``store.coordination``, ``store.sql``, ``workers``, ``workers.execution``, ``workers.fanout``,
``workers.upkeep``.
"""
