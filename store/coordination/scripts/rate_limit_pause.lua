-- Pauses the calls of scopes after a provider throttled a call. rate_limit_acquire.lua describes the values.
--
-- KEYS[n]    scope n
-- ARGV[1]    '1' if the provider has named the time, else '0'
-- ARGV[n+1]  milliseconds to pause scope n for; 0 leaves it as it is
-- Reply      milliseconds for which any of the scopes is paused by a time that the provider has named, else 0

-- include coordination/scripts/clock.lua

local now, longest = clock(), 0
for n, value in ipairs(redis.call('MGET', unpack(KEYS))) do
    local paced, held, named = string.match(value or '0 0 0', '^(%S+) (%S+) (%S+)$')
    local milliseconds = tonumber(ARGV[n + 1])
    if milliseconds > 0 then
        held = math.max(held, now + milliseconds)
        if ARGV[1] == '1' then named = math.max(named, now + milliseconds) end
        value = string.format('%.6f %.6f %.6f', paced, held, named)
        redis.call('SET', KEYS[n], value, 'PX', math.ceil(math.max(paced, held) - now) + 1)
    end
    longest = math.max(longest, named - now)
end
return math.ceil(longest)
