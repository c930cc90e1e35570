"""The HTTP client for all provider calls: connections, timeouts, retries and errors."""
