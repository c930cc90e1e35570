"""The Celery app and its tasks.

``jobs`` defines the jobs of a request and their replies. ``execution`` performs one job, ``fanout``
distributes all jobs of a request, and ``upkeep`` has the scheduled work.
"""
