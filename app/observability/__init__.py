"""Access log, request metrics, traces, ``/metrics`` and the health routes."""
