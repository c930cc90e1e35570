"""Google Calendar API v3 behind the interface of ``providers.base``.

Imported by ``app.api``, ``providers``, ``workers.execution``.
"""
