-- Marks the tags of an event write that is about to begin. Connections that have read under one of them get a
-- new generation, so that reads in progress are not stored. What is cached of them is kept until the mark ends.
--
-- KEYS     reader sets: first those of mailboxes, then those of calendars; then for each the writes under way:
--          a sorted set of their names by the time at which their marks end, in milliseconds
-- ARGV[1]  JSON object:
--   generation          the new generation
--   generation_seconds  its lifetime
--   mailboxes           number of reader sets of mailboxes
--   connections         list with the connection of the write
--   write               name of the write
--   milliseconds        time until the mark ends
-- Reply    none

-- include coordination/scripts/clock.lua
-- include cache/scripts/readers.lua

local arguments = cjson.decode(ARGV[1])
local now = math.floor(clock())
local ends = now + arguments.milliseconds
local sets = {}
for n = 1, #KEYS / 2 do
    local key = KEYS[#KEYS / 2 + n]
    sets[n] = KEYS[n]
    redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
    redis.call('ZADD', key, ends, arguments.write)
    redis.call('PEXPIREAT', key, redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
end
for connection, prefixes in pairs(connections_in(sets, arguments.mailboxes, arguments.connections)) do
    replace_generation(connection, arguments.generation, arguments.generation_seconds)
    for _, bucket in ipairs(buckets_of(connection, prefixes)) do
        if redis.call('PTTL', bucket) > arguments.milliseconds then
            redis.call('PEXPIREAT', bucket, ends)
        end
    end
end
