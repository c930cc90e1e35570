-- Records an answered call: closes the account's breaker, and the provider's if the call was its probe.
--
-- KEYS[1]   breaker of the provider
-- KEYS[2]   breaker of the account
-- KEYS[3]   time of the provider's last answer
-- KEYS[4]   sorted set of the open breakers of accounts
-- ARGV[1]   JSON object; times in milliseconds:
--   now         current time; Redis's clock if absent
--   remembered  how long the time of the last answer is kept
-- Reply     none

-- include coordination/scripts/clock.lua
-- include coordination/scripts/breaker.lua

local arguments = cjson.decode(ARGV[1])
local now = arguments.now or math.floor(clock())
local provider, account = KEYS[1], KEYS[2]
redis.call('SET', KEYS[3], now, 'PX', arguments.remembered)
if redis.call('DEL', account) == 1 then redis.call('ZREM', KEYS[4], account) end
if is_probe(decode_breaker(redis.call('GET', provider)), account, now) then redis.call('DEL', provider) end
