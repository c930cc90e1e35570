"""Agreements between processes, in Redis: single flight, circuit breakers, rate limiters, locks and
heartbeats.

Imported by ``app`` and ``workers``.
"""
