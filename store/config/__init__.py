"""Settings from the environment, each declared once in ``declaration``, and the embedded Redis.

Imported by ``app``, ``app.cli``, ``app.dashboard``, ``app.http``, ``app.server``, ``store``, ``store.sql``,
``workers``, ``workers.execution``, ``workers.telemetry``.
"""
