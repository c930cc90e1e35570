"""The interval engine: pure functions over half-open UTC intervals, in int64 milliseconds since 1970."""
