"""Queries, one module for each subject. Each function takes the caller's session."""
