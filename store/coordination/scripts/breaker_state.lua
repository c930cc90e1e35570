-- Reads the states of providers' breakers. breaker.lua describes the hashes.
--
-- KEYS     breakers of providers
-- ARGV[1]  current time in milliseconds, or '' for Redis's clock
-- Reply    for each breaker five numbers: milliseconds since it opened, milliseconds until a probe may call, 1 if
--          it is open, 1 if a probe is in progress, and the number of accounts whose breakers are open

-- include coordination/scripts/clock.lua

local now = tonumber(ARGV[1]) or math.floor(clock())
local reply = {}
for _, key in ipairs(KEYS) do
    local kept = redis.call('HMGET', key, 'since', 'until', 'trying')
    local since, due, trying = kept[1], kept[2], kept[3]
    reply[#reply + 1] = due and now - since or 0
    reply[#reply + 1] = due and math.max(0, due - now) or 0
    reply[#reply + 1] = due and 1 or 0
    reply[#reply + 1] = (tonumber(trying) or 0) > now and 1 or 0
    reply[#reply + 1] = redis.call('ZCOUNT', key .. ':open', now, '+inf')
end
return reply
