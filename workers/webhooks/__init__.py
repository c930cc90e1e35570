"""Delivers webhooks to the endpoints of API clients.

Imported by ``workers.celery_app``.
"""
