"""Scheduled work: renews tokens, maintains notification channels, and purges old records.

Imported by ``app.accounts``, ``workers``, ``workers.execution``, ``workers.webhooks``.
"""
