"""Counters that processes add up in Redis.

Imported by ``app.dashboard``, ``app.observability``, ``store``, ``workers.fanout``, ``workers.telemetry``.
"""
