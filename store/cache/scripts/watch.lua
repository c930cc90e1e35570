-- Starts the watch of a calendar. Its connection gets a new generation, so that only reads under the watch are
-- stored from now on.
--
-- KEYS[1]  generation of the connection
-- KEYS[2]  watch of the calendar
-- ARGV[1]  JSON object:
--   generation          the new generation
--   generation_seconds  its lifetime
--   channel             the channel that watches
--   milliseconds        how long it watches
-- Reply    none

local arguments = cjson.decode(ARGV[1])
redis.call('SET', KEYS[1], arguments.generation, 'EX', arguments.generation_seconds)
redis.call('SET', KEYS[2], arguments.channel, 'PX', arguments.milliseconds)
