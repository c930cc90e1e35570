"""Access log, request metrics, traces, ``/metrics`` and the health routes.

Imported by ``app.web`` and the command line.
"""
