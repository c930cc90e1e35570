"""One ``send`` for every call to a provider: connections, timeouts, retries and errors.

Imported by ``providers.google``, ``providers.microsoft``, ``providers.oauth``, ``workers``,
``workers.execution``, ``workers.fanout``, ``workers.telemetry``, ``workers.webhooks``.
"""
