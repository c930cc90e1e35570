"""Scheduled work: tokens are renewed, channels kept, old records purged.

Imported by ``workers.tasks``.
"""
