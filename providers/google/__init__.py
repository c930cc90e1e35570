"""Google Calendar API v3 behind our own interface."""
