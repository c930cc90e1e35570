"""Encryption at rest, API keys, one-time secrets and the allow-list of redirects.

Imported by ``app.accounts``, ``app.api``, ``app.cli``, ``app.dashboard``, ``app.http``, ``app.server``,
``store``, ``store.config``, ``store.sql``, ``workers.execution``, ``workers.upkeep``, ``workers.webhooks``.
"""
