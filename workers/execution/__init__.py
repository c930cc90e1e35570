"""What a worker does for one connection: reads, writes, tokens, consents and revocations.

Imported by ``workers.fanout`` and ``workers.upkeep``.
"""
