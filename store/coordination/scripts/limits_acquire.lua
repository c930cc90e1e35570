-- Acquires permits for calls to providers: pauses, rate limits (GCRA) and mailbox leases in one step.
--
-- KEYS     for each call five: the times of two rate limits, the provider's and the account's; their records
--          (limits.lua); the leases of the mailbox, or ''
-- ARGV[1]  JSON object; times in milliseconds:
--   now    current time; Redis's clock if absent
--   left   time until the deadline: no permit is reserved beyond it
--   lease  lifetime of a lease of a mailbox, and of a probe
--   calls  list of {cost, job, limits}: the number of calls to the provider, 0 if they are paid for; the name of the
--          lease, and of a probe; for each rate limit {interval, tolerance}: the time between two calls at an even pace,
--          and how early a call may be
-- Reply    for each call four values: milliseconds to wait (0: call now), 1 if its cost is now paid, the reason
--          (WaitReason), and 1 if its success must be recorded
--
-- The time of a rate limit is the one at which all permitted calls would have been made at an even pace.

-- include coordination/scripts/clock.lua
-- include coordination/scripts/limits.lua

-- How far ahead a permit is reserved. Reserved permits come before all later requests, so this is short.
local HORIZON = 500
-- When a job without a permit tries again: sooner than HORIZON, so that capacity is not wasted.
local RETRY = 250
-- The same for a job that waits for another call to the same mailbox, and for one that is refused during a probe, which
-- usually ends before its lease.
local LEASE_RETRY, PROBE_RETRY = 50, 1000
-- Microsoft Graph's limit of concurrent calls for one app and mailbox.
local CALLS_AT_ONCE = 4
-- How long the leases of a mailbox are kept at least: longer than a read may take.
local LEASES_KEPT = 600000

local arguments = cjson.decode(ARGV[1])
local now, left, lease = arguments.now or clock(), arguments.left, arguments.lease
local known = {}
for n, value in ipairs(redis.call('MGET', unpack(KEYS))) do
    if n % 5 == 1 or n % 5 == 2 then known[KEYS[n]] = {time = tonumber(value or 0)} end
    if n % 5 == 3 or n % 5 == 4 then known[KEYS[n]] = decode(value) end
end

-- The time to wait for the end of a record's pause, and its reason.
local function paused(record, job)
    if record.reason == 'probe:' .. job then return 0 end
    local wait = record.ends - now
    if is_probed(record) then return math.min(wait, PROBE_RETRY), 'open' end
    return wait, record.reason
end

-- The time to wait for calls at an even pace, and 1 if they are now paid.
local function pay(call, keys)
    local delay = 0
    for n, limit in ipairs(call.limits) do
        local pace, interval, tolerance = known[keys[n]], limit[1], limit[2]
        pace.after = math.max(pace.time, now) + math.min(call.cost * interval, tolerance)
        delay = math.max(delay, pace.after - tolerance - now)
    end
    if delay > left then return delay, 0 end
    if delay > HORIZON then return RETRY, 0 end
    for n = 1, 2 do
        local time = known[keys[n]].after
        known[keys[n]].time = time
        redis.call('SET', keys[n], string.format('%.6f', time), 'PX', math.ceil(time - now) + 1)
    end
    return delay, 1
end

-- Whether the job has a lease of the mailbox.
local function acquire_lease(mailbox, job)
    if redis.call('ZCARD', mailbox) >= CALLS_AT_ONCE then
        redis.call('ZREMRANGEBYSCORE', mailbox, '-inf', now)
        -- A job that has the lease already keeps it.
        if redis.call('ZCARD', mailbox) >= CALLS_AT_ONCE and not redis.call('ZSCORE', mailbox, job) then
            return false
        end
    end
    redis.call('ZADD', mailbox, now + lease, job)
    redis.call('PEXPIRE', mailbox, math.max(lease, LEASES_KEPT))
    return true
end

local replies = {}
for n, call in ipairs(arguments.calls) do
    local keys = {unpack(KEYS, 5 * n - 4, 5 * n)}
    local wait, paid, reason = 0, 0, 'pace'
    for key = 3, 4 do
        local pause_left, why = paused(known[keys[key]], call.job)
        if pause_left > wait then wait, reason = pause_left, why end
    end
    if wait <= 0 and call.cost > 0 then wait, paid = pay(call, keys) end
    if wait <= 0 and keys[5] ~= '' and not acquire_lease(keys[5], call.job) then
        wait, reason = LEASE_RETRY, 'mailbox'
    end
    if wait <= 0 then
        for key = 3, 4 do
            local record = known[keys[key]]
            if record.since > 0 then
                record.ends, record.reason, reason = now + lease, 'probe:' .. call.job, 'probe'
                store(keys[key], record, now)
            end
        end
    end
    local recorded = reason == 'probe' or known[keys[4]].failures > 0
    for _, value in ipairs({math.ceil(wait), paid, reason, recorded and 1 or 0}) do
        replies[#replies + 1] = value
    end
end
return replies
