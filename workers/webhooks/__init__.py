"""Delivers webhooks to the endpoints of API clients."""
