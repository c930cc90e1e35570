"""Counters of each process, summed over all processes in Redis.

Imported by ``app.dashboard``, ``app.http``, ``app.observability``, ``store``, ``workers.fanout``,
``workers.telemetry``.
"""
