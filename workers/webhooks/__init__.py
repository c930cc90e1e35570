"""Delivers webhooks to the endpoints of API clients.

Imported by ``app.accounts``, ``app.schemas``, ``workers``, ``workers.execution``.
"""
