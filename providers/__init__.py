"""Google Calendar and Microsoft 365 behind one interface, and a sandbox that emulates both."""
