"""The fan-out: the web tier sends jobs to workers and collects the replies; workers perform the jobs.

Imported by ``app``, ``app.availability``, ``app.dashboard``, ``app.events``, ``app.http``,
``app.observability``, ``app.server``, ``workers``.
"""
