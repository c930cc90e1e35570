-- Records an answered call: forgets the failures of its account, and closes the circuit breakers that it has tested.
--
-- KEYS[1], KEYS[2]  records of the provider and of the account (limits.lua)
-- KEYS[3]  time of the provider's last answer
-- KEYS[4]  sorted set of the accounts whose circuit breakers are open
-- ARGV[1]  JSON object; times in milliseconds:
--   now      current time; Redis's clock if absent
--   account  name of the account
--   took     how long ago the call began
-- Reply    none

-- include coordination/scripts/clock.lua
-- include coordination/scripts/limits.lua

local arguments = cjson.decode(ARGV[1])
local now = math.floor(arguments.now or clock())
redis.call('SET', KEYS[3], string.format('%.0f', now), 'PX', REMEMBERED)
for n, value in ipairs(redis.call('MGET', KEYS[1], KEYS[2])) do
    local record = decode(value)
    -- An answer to a call from before the circuit breaker opened says nothing about now.
    if (record.since > 0 or record.failures > 0) and now - arguments.took >= record.since then
        if record.reason == 'open' or is_probed(record) then record.ends = 0 end
        record.since, record.failures = 0, 0
        store(KEYS[n], record, now)
        if n == 2 then redis.call('ZREM', KEYS[4], arguments.account) end
    end
end
