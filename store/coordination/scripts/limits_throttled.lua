-- Pauses the reads and writes of a provider, or of one account, because the provider throttles calls.
--
-- KEYS     records (limits.lua) of the provider and of the account for reads, then for writes
-- ARGV[1]  JSON object:
--   number        the one to pause: 1: the provider, 2: the account
--   milliseconds  for how long
--   reason        'named' if the provider has named the time, else 'backoff'
-- Reply    milliseconds for which a pause that the provider has named lasts, of the provider or of the account

-- include coordination/scripts/clock.lua
-- include coordination/scripts/limits.lua

local arguments, now, held = cjson.decode(ARGV[1]), math.floor(clock()), 0
for n, value in ipairs(redis.call('MGET', unpack(KEYS))) do
    local record = decode(value)
    if n % 2 == arguments.number % 2 then
        pause(record, now + arguments.milliseconds, arguments.reason)
        store(KEYS[n], record, now)
    end
    held = math.max(held, named(record, now))
end
return held
