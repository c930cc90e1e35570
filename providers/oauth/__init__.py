"""The common part of all OAuth servers: consent, tokens, identity, and the check of a registration."""
