"""The fan-out: the web tier sends jobs to workers and collects the replies; workers perform the jobs."""
