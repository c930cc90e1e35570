"""Marshmallow schemas of requests and answers, from which the OpenAPI document is made.

Imported by ``app.api``, ``app.availability``, ``app.cli``, ``app.dashboard``, ``app.events``, ``app.http``,
``app.openapi``.
"""
