"""Counters that processes add up in Redis.

Imported by ``app`` and ``workers``.
"""
