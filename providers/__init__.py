"""Google, Microsoft 365, CalDAV and feeds behind one interface, and a sandbox that emulates the first two."""
