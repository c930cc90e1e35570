"""The fan-out: the web tier sends jobs to workers and joins their replies; workers take jobs and perform
them.

Imported by ``app``, ``app.accounts``, ``app.api``, ``app.availability``, ``app.dashboard``, ``app.events``,
``app.http``, ``app.server``, ``workers``, ``workers.execution``, ``workers.telemetry``, ``workers.upkeep``.
"""
