-- Stores the buckets of a calendar, unless its connection has a new generation since the read began.
--
-- KEYS[1]    generation of the connection
-- KEYS[2]    index of the connection: the set of its buckets
-- KEYS[3]    watch of the calendar
-- KEYS[n+3]  bucket n
-- ARGV[1]    JSON object:
--   generation   the generation when the read began
--   ttl          milliseconds of a bucket's lifetime
--   watched_ttl  the same for a watched calendar, until the watch ends
-- ARGV[n+1]  value of bucket n: 8 bytes of format, 8 bytes of the read's time (both little-endian), then periods
-- Reply      1 if the generation is unchanged, else 0

local arguments = cjson.decode(ARGV[1])
if (redis.call('GET', KEYS[1]) or '') ~= arguments.generation then return 0 end
local lifetime = math.max(arguments.ttl, math.min(arguments.watched_ttl, redis.call('PTTL', KEYS[3])))
for n = 2, #ARGV do
    local key, value = KEYS[n + 2], ARGV[n]
    -- A slow read may finish after a read that began later: the newer bucket stays. Reversed, the bytes of the
    -- little-endian times compare like the numbers.
    local head = redis.call('GETRANGE', key, 0, 15)
    local same_format = string.sub(head, 1, 8) == string.sub(value, 1, 8)
    local newer = string.reverse(string.sub(head, 9)) > string.reverse(string.sub(value, 9, 16))
    if not (same_format and newer) then
        redis.call('SET', key, value, 'PX', lifetime)
        redis.call('SADD', KEYS[2], key)
    end
end
-- The index must not expire before a bucket that it lists.
if redis.call('PTTL', KEYS[2]) < lifetime then redis.call('PEXPIRE', KEYS[2], lifetime) end
return 1
