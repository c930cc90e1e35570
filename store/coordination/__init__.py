"""Coordination of processes through Redis: single flight, circuit breakers, rate limiters, locks, heartbeats.

Imported by ``app``, ``app.accounts``, ``app.api``, ``app.cli``, ``app.dashboard``, ``app.events``,
``app.http``, ``app.observability``, ``app.schemas``, ``app.server``, ``store``, ``workers``,
``workers.execution``, ``workers.fanout``, ``workers.telemetry``, ``workers.upkeep``, ``workers.webhooks``.
"""
