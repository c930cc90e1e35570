-- Holds back the calls of scopes after a provider throttled a call.
--
-- KEYS[n]    scope n
-- ARGV[1]    '1' if the provider has named the time, else '0'
-- ARGV[n+1]  milliseconds to hold scope n for; 0 leaves it as it is
-- Reply      milliseconds for which any of the scopes is held by a time that the provider has named, else 0

-- include coordination/scripts/clock.lua

local now = clock()
local longest = 0
for n, key in ipairs(KEYS) do
    local kept = redis.call('HMGET', key, 'held', 'named')
    local held, named = tonumber(kept[1]) or 0, tonumber(kept[2]) or 0
    local milliseconds = tonumber(ARGV[n + 1])
    if milliseconds > 0 then
        held = math.max(held, now + milliseconds)
        if ARGV[1] == '1' then named = math.max(named, now + milliseconds) end
        redis.call('HSET', key, 'held', string.format('%.3f', held), 'named', string.format('%.3f', named))
        if redis.call('PTTL', key) < milliseconds then redis.call('PEXPIRE', key, milliseconds) end
    end
    longest = math.max(longest, named - now)
end
return math.ceil(longest)
