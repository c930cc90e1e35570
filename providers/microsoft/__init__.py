"""Microsoft Graph v1.0 calendars behind our own interface."""
