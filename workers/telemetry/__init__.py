"""Logs, traces and metrics of the workers, and the request context that a task carries."""
