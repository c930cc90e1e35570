"""The clock of Redis, by which all machines agree."""

from __future__ import annotations

# In milliseconds, with their fraction.
MOMENT = """
local function moment()
    local time = redis.call('TIME')
    return time[1] * 1000 + time[2] / 1000
end
"""
