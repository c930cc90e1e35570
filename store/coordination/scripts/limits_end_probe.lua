-- Ends a job's probe that had no result, so that another job may probe.
--
-- KEYS     records (limits.lua)
-- ARGV[1]  name of the job
-- Reply    none

-- include coordination/scripts/clock.lua
-- include coordination/scripts/limits.lua

for n, value in ipairs(redis.call('MGET', unpack(KEYS))) do
    local record = decode(value)
    if record.reason == 'probe:' .. ARGV[1] then
        record.ends, record.reason = 0, 'open'
        store(KEYS[n], record, clock())
    end
end
