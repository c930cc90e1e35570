"""Microsoft Graph v1.0 calendars behind the interface of ``providers.base``.

Imported by ``app.api``, ``app.schemas``, ``providers``, ``providers.sandbox``, ``workers.execution``.
"""
