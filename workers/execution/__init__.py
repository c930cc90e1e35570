"""Performs one job, usually for one connection: reads, writes, tokens, consents and revocations."""
