"""Counters of each process, summed over all processes in Redis."""
