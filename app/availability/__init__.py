"""Busy and scheduling requests: their calendars, the lookup of busy periods, and why a moment is offered."""
