"""Scheduled work: tokens are renewed, channels kept, old records purged.

Imported by ``app.accounts``, ``workers``, ``workers.execution``, ``workers.webhooks``.
"""
