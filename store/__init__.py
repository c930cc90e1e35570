"""State that outlives a request: the SQL database, encrypted tokens, API keys, Redis caches and settings."""
