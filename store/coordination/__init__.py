"""Agreements between processes, in Redis: single flight, circuit breakers, rate limiters, locks and
heartbeats.

Imported by ``app.cli``, ``app.dashboard``, ``app.events``, ``app.http``, ``app.observability``, ``store``,
``workers``, ``workers.execution``, ``workers.fanout``, ``workers.upkeep``, ``workers.webhooks``.
"""
