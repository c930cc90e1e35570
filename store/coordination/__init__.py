"""Coordination of processes through Redis: single flight, circuit breakers, rate limiters, locks, heartbeats.

Imported by ``app.accounts``, ``app.cli``, ``app.dashboard``, ``app.events``, ``app.http``,
``app.observability``, ``store``, ``workers``, ``workers.execution``, ``workers.fanout``, ``workers.upkeep``,
``workers.webhooks``.
"""
