"""Coordination of processes through Redis: single flight, circuit breakers, limits, locks, heartbeats."""
