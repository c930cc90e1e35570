"""Scheduled work: renews tokens, maintains notification channels, and purges old records."""
