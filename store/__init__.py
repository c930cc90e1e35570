"""Everything that outlives a request: SQL records, sealed tokens, API keys, the busy cache, settings."""
