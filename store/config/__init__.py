"""Settings from the environment, and the embedded Redis.

Imported by ``app``, ``workers`` and ``store.stores``.
"""
