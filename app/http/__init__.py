"""What HTTP requests have in common: authentication, parsing, responses, errors, rate limits and
idempotency.

Imported by ``app``, ``app.accounts``, ``app.api``, ``app.availability``, ``app.dashboard``,
``app.docs_site``, ``app.events``, ``app.observability``, ``app.openapi``, ``app.schemas``, ``app.server``.
"""
