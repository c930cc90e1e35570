"""The OAuth servers of both providers: consent, tokens, identity and revocation.

Imported by ``app.accounts``, ``app.cli``, ``app.dashboard``, ``providers``, ``providers.google``,
``providers.microsoft``, ``workers``, ``workers.execution``, ``workers.fanout``.
"""
