"""Queries, one file per thing that is asked about. Each takes the caller's session."""
