"""Access log, request metrics, traces, ``/metrics`` and the health routes.

Imported by ``app``, ``app.api``, ``app.dashboard``.
"""
