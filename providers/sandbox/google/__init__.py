"""Google Calendar API v3 and its OAuth server, emulated below ``/google``."""
