"""What HTTP requests have in common: authentication, parsing, responses, errors, rate limits and
idempotency.

Imported by every other part of ``app``; knows no route.
"""
