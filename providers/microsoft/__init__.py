"""Microsoft Graph v1.0 calendars as a ``CalendarProvider``."""

# https://learn.microsoft.com/en-us/graph/json-batching#batch-size-limitations
PARTS_PER_BATCH = 20

# Tenant names that mean many tenants: https://learn.microsoft.com/en-us/entra/identity-platform/v2-protocols
MANY_TENANTS = frozenset({"common", "organizations", "consumers"})
