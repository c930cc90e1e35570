"""Logs, traces and metrics of the workers, and the context that a task carries.

Imported by all of ``workers``, and by ``app``.
"""
