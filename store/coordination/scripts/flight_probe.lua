-- Marks flights as probes of an open circuit. Followers wait for them only while they are young.
--
-- KEYS     flights
-- ARGV[1]  milliseconds for which followers wait
-- ARGV[2]  reply list of the request that waits to the end
-- Reply    none

-- include coordination/scripts/clock.lua

local young_until = clock() + ARGV[1]
for _, key in ipairs(KEYS) do
    if redis.call('EXISTS', key) == 1 then redis.call('HSET', key, 'young', young_until, 'for', ARGV[2]) end
end
