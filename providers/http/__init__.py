"""The HTTP client for all provider calls: connections, timeouts, retries and errors.

Imported by ``app.accounts``, ``app.schemas``, ``providers.google``, ``providers.microsoft``,
``providers.oauth``, ``workers``, ``workers.execution``, ``workers.telemetry``, ``workers.webhooks``.
"""
