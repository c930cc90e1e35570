"""Reads and writes events and calendars for one request."""
