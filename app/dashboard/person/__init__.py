"""Pages about one user beside the accounts: calendars, the next events, and working hours."""
