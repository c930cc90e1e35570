"""The fan-out: the web tier sends jobs to workers and joins their replies; workers take jobs and perform
them.

``client`` is imported by ``app``, the rest by ``workers``.
"""
