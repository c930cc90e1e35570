-- Ends the mark of an event write. The marks of other writes under way stay.
--
-- KEYS     for each tag the writes under way, as in mark_write.lua
-- ARGV[1]  JSON object:
--   write    name of the write
-- Reply    none

-- include coordination/scripts/clock.lua

local write = cjson.decode(ARGV[1]).write
local now = math.floor(clock())
for _, key in ipairs(KEYS) do
    redis.call('ZREM', key, write)
    redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
    local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    if last then redis.call('PEXPIREAT', key, last) end
end
