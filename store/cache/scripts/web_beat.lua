-- Records a heartbeat of a web process, and the end of a gap if no web process has sent one for too long.
--
-- KEYS[1]  time of the last heartbeat of any web process, in milliseconds
-- KEYS[2]  end of the last gap, in milliseconds
-- ARGV[1]  JSON object:
--   gap      milliseconds between two heartbeats from which on they are a gap
-- Reply    none

-- include coordination/scripts/clock.lua

local now = math.floor(clock())
local last = tonumber(redis.call('GET', KEYS[1]))
if not last or now - last > cjson.decode(ARGV[1]).gap then redis.call('SET', KEYS[2], now) end
redis.call('SET', KEYS[1], now)
