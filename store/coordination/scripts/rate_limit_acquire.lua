-- Acquires permits for calls to providers: rate limits (GCRA), circuit breakers and mailbox leases in one step.
--
-- KEYS     the rate-limited scopes, then the breakers, then the mailboxes
-- ARGV[1]  JSON object; times in milliseconds:
--   now          current time; Redis's clock if absent
--   left         time until the deadline: no permit is reserved beyond it
--   lease        lifetime of a lease of a mailbox, and of a probe
--   horizon      how far ahead a permit is reserved
--   retry, lease_retry  when to retry without a permit, and without a lease
--   concurrent   number of concurrent calls that a mailbox accepts
--   pause        pause of a circuit breaker
--   young        how long other jobs wait for a probe
--   scopes       list of {interval, tolerance} for each scope: the time between two calls at an even pace, and
--                how early a call may be
--   breakers     number of breakers
--   calls        list of calls, each with
--     scopes     the numbers of its two scopes
--     breakers   the numbers of its breakers: the provider's, then the account's
--     cost       number of calls to the provider; 0 if they are paid for
--     mailbox    number of its mailbox; 0 without
--     lease      name of its lease and, as a probe, of its job
-- Reply    for each call three values: milliseconds to wait (0 or less: call now), 1 if its cost is now paid, and
--          the reason (WaitReason)

-- include coordination/scripts/clock.lua
-- include coordination/scripts/breaker.lua

local arguments = cjson.decode(ARGV[1])
local now, left, lease = arguments.now or clock(), arguments.left, arguments.lease
local scopes = {}
for n, scope in ipairs(arguments.scopes) do
    -- paced: when the permitted calls end at an even pace; held: end of a backoff; named: the same, if the provider
    -- has named it.
    local kept = redis.call('HMGET', KEYS[n], 'paced', 'held', 'named')
    scopes[n] = {
        interval = scope.interval, tolerance = scope.tolerance,
        paced = tonumber(kept[1]) or 0, held = tonumber(kept[2]) or 0, named = tonumber(kept[3]) or 0
    }
end
local breakers = {}
for n = 1, arguments.breakers do breakers[n] = load_breaker(KEYS[#scopes + n]) end

-- The longest times of a call's breakers, as remaining() returns them.
local function blocked(call)
    local rest, probed = 0, 0
    for _, each in ipairs(call.breakers) do
        local more, probing = remaining(breakers[each], call.account, call.lease, now, arguments.pause)
        rest, probed = math.max(rest, more), math.max(probed, probing)
    end
    return rest, probed
end

local replies, refused = {}, {}
for _, call in ipairs(arguments.calls) do
    local cost, mailbox = call.cost, call.mailbox
    call.account, call.offset = breakers[call.breakers[2]].key, #replies
    local rest, probed = blocked(call)
    local held, named, delay = 0, 0, 0
    for _, number in ipairs(call.scopes) do
        local scope = scopes[number]
        held = math.max(held, scope.held - now)
        named = math.max(named, scope.named - now)
        scope.after = math.max(scope.paced, now) + math.min(cost * scope.interval, scope.tolerance)
        delay = math.max(delay, scope.after - scope.tolerance - now)
    end
    local wait, paid, reason = 0, 0, 'pace'
    if rest > 0 then
        wait, reason = rest, 'open'
        refused[#refused + 1] = call
    elseif probed > 0 then
        wait, reason = math.min(arguments.retry, probed), 'probed'
    elseif held > 0 then
        wait, reason = held, held > named and 'backoff' or 'told'
    elseif cost > 0 and delay > math.min(arguments.horizon, left) then
        wait = delay > left and delay or arguments.retry
    elseif cost > 0 then
        wait, paid = delay, 1
        for _, number in ipairs(call.scopes) do
            local scope = scopes[number]
            scope.paced, scope.changed = scope.after, true
        end
    end
    if wait <= 0 and mailbox > 0 then
        local key = KEYS[#scopes + #breakers + mailbox]
        redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
        -- The client retries when Redis's reply was lost: a job that has the lease already keeps it.
        if redis.call('ZCARD', key) < arguments.concurrent or redis.call('ZSCORE', key, call.lease) then
            redis.call('ZADD', key, now + lease, call.lease)
            if redis.call('PTTL', key) < lease then redis.call('PEXPIRE', key, lease) end
        else
            wait, reason = arguments.lease_retry, 'mailbox'
        end
    end
    if wait <= 0 then
        for _, number in ipairs(call.breakers) do
            if begin_probe(breakers[number], call.account, call.lease, now, lease, arguments.young) then
                reason = 'probe'
            end
        end
    end
    replies[#replies + 1] = math.ceil(wait)
    replies[#replies + 1] = paid
    replies[#replies + 1] = reason
end
-- A refused account may not probe, but it waits for a probe that another call of this batch has begun.
for _, call in ipairs(refused) do
    local rest, probed = blocked(call)
    if rest <= 0 and probed > 0 then
        replies[call.offset + 1] = math.ceil(math.min(arguments.retry, probed))
        replies[call.offset + 3] = 'probed'
    end
end
for n, scope in ipairs(scopes) do
    if scope.changed then
        redis.call('HSET', KEYS[n], 'paced', string.format('%.3f', scope.paced))
        redis.call('PEXPIRE', KEYS[n], math.ceil(math.max(scope.paced, scope.held) - now) + 1)
    end
end
return replies
