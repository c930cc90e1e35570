"""The HTTP layer of all routes: authentication, parsing, responses, errors, rate limits, idempotency."""
