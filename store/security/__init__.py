"""Encryption at rest, API keys, one-time secrets and the allow-list of redirects."""
