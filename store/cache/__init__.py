"""Redis caches: busy periods, calendar lists, and each process's versioned copy of database rows.

Imported by ``app.accounts``, ``app.api``, ``app.availability``, ``app.dashboard``, ``app.events``,
``app.http``, ``store``, ``store.coordination``, ``store.sql``, ``workers``, ``workers.execution``,
``workers.fanout``, ``workers.upkeep``.
"""
