"""The SQL database: tables, queries, migrations and session events.

Imported by ``app.accounts``, ``app.api``, ``app.availability``, ``app.cli``, ``app.dashboard``,
``app.events``, ``app.http``, ``app.observability``, ``app.openapi``, ``app.schemas``, ``store``,
``store.cache``, ``store.coordination``, ``store.metrics``, ``workers``, ``workers.execution``,
``workers.fanout``, ``workers.telemetry``, ``workers.upkeep``, ``workers.webhooks``.
"""
