-- Invalidates one calendar. Its connection gets a new generation, so that reads in progress are not stored.
--
-- KEYS[1]  generation of the connection
-- KEYS[2]  index of the connection: the set of its buckets
-- KEYS[3]  watch of the calendar
-- ARGV[1]  JSON object:
--   generation          the new generation
--   generation_seconds  its lifetime
--   prefix              prefix of the names of the calendar's buckets
--   unwatch             a channel that no longer works: the watch ends if it is this channel's; '' for none
-- Reply    none

local arguments = cjson.decode(ARGV[1])
local prefix = arguments.prefix
-- First a command that needs no memory: a full Redis then permits the others.
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], arguments.generation, 'EX', arguments.generation_seconds)
if redis.call('GET', KEYS[3]) == arguments.unwatch then redis.call('DEL', KEYS[3]) end
for _, bucket in ipairs(redis.call('SMEMBERS', KEYS[2])) do
    if string.sub(bucket, 1, #prefix) == prefix then
        redis.call('DEL', bucket)
        redis.call('SREM', KEYS[2], bucket)
    end
end
