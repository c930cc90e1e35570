"""Performs one job, usually for one connection: reads, writes, tokens, consents and revocations.

Imported by ``app.accounts``, ``app.api``, ``app.cli``, ``app.dashboard``, ``workers``, ``workers.fanout``,
``workers.upkeep``.
"""
