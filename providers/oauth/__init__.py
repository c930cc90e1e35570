"""The common part of all OAuth servers: consent, tokens, identity, and the check of a registration.

Imported by ``app.accounts``, ``app.cli``, ``app.dashboard``, ``providers``, ``providers.google``,
``providers.microsoft``, ``workers``, ``workers.execution``, ``workers.fanout``.
"""
