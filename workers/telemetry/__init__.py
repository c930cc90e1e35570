"""Logs, traces and metrics of the workers, and the request context that a task carries.

Imported by ``app``, ``app.api``, ``app.cli``, ``app.http``, ``app.observability``, ``app.server``,
``workers``, ``workers.execution``, ``workers.fanout``.
"""
