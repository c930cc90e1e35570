"""The HTTP layer that all routes share: authentication, parsing, responses, errors, rate limits and
idempotency.

Imported by ``app``, ``app.accounts``, ``app.api``, ``app.availability``, ``app.cli``, ``app.dashboard``,
``app.docs_site``, ``app.events``, ``app.observability``, ``app.openapi``, ``app.schemas``, ``app.server``.
"""
