-- Stores the buckets of calendars, except those whose connection has a new generation since the read began.
--
-- KEYS       for each calendar: generation and index (the set of the buckets) of its connection, its watch, and
--            its buckets
-- ARGV[1]    JSON object:
--   ttl          milliseconds of a bucket's lifetime
--   watched_ttl  the same for a watched calendar, until the watch ends
--   max_age      the longest time since its read for which a bucket is kept
--   margin       milliseconds by which an index outlives its buckets
--   reads        for each calendar the generation when the read began, the number of buckets, and the
--                milliseconds since the read began
-- ARGV[n+1]  value of bucket n: 8 bytes of format, 8 bytes of the read's time (both little-endian), then periods
-- Reply      the number of calendars whose generation is unchanged

local arguments = cjson.decode(ARGV[1])
-- An index is no string, so it has no value here.
local known = redis.call('MGET', unpack(KEYS))
local key_offset, argument, stored = 0, 1, 0
-- The buckets that were written here: two reads may have the same one.
local latest = {}
for _, read in ipairs(arguments.reads) do
    local generation, count, age = read[1], read[2], read[3]
    local index, watch = KEYS[key_offset + 2], KEYS[key_offset + 3]
    if (known[key_offset + 1] or '') == generation then
        stored = stored + 1
        local lifetime = arguments.ttl
        if known[key_offset + 3] then
            lifetime = math.max(lifetime, math.min(arguments.watched_ttl, redis.call('PTTL', watch)))
        end
        lifetime = math.min(lifetime, arguments.max_age - age)
        local written = {}
        for n = 1, count do
            local key, value = KEYS[key_offset + 3 + n], ARGV[argument + n]
            local old = latest[key] or known[key_offset + 3 + n] or ''
            -- A slow read may finish after a read that began later: the newer bucket stays. Reversed, the bytes
            -- of the little-endian times compare like the numbers.
            local same_format = string.sub(old, 1, 8) == string.sub(value, 1, 8)
            local newer = string.reverse(string.sub(old, 9, 16)) > string.reverse(string.sub(value, 9, 16))
            if lifetime > 0 and not (same_format and newer) then
                redis.call('SET', key, value, 'PX', lifetime)
                written[#written + 1] = key
                latest[key] = value
            end
        end
        if #written > 0 then
            redis.call('SADD', index, unpack(written))
            -- The index must not expire before a bucket that it lists. The margin saves a command for most reads.
            if redis.call('PTTL', index) < lifetime then
                redis.call('PEXPIRE', index, lifetime + arguments.margin)
            end
        end
    end
    key_offset, argument = key_offset + 3 + count, argument + count
end
return stored
