"""One ``send`` for every call to a provider: connections, timeouts, retries and errors.

Imported by the providers and by ``providers.oauth``.
"""
