-- Acquires permits for calls to providers: rate limits (GCRA), circuit breakers and mailbox leases in one step.
--
-- KEYS     the rate-limited scopes, then the breakers, then the mailboxes
-- ARGV[1]  JSON object; times in milliseconds:
--   now          current time; Redis's clock if absent
--   left         time until the deadline: no permit is reserved beyond it
--   lease        lifetime of a lease of a mailbox, and of a probe
--   leases_kept  how long the leases of a mailbox are kept at least after the last one began
--   horizon      how far ahead a permit is reserved
--   retry, lease_retry, probe_retry  when to retry without a permit, without a lease, and during a probe
--   concurrent   number of concurrent calls that a mailbox accepts
--   scopes       list of {interval, tolerance} for each scope: the time between two calls at an even pace, and
--                how early a call may be
--   breakers     number of breakers
--   calls        list of calls, each with
--     scopes     the numbers of its two scopes
--     breakers   the numbers of its breakers: the provider's, then the account's
--     cost       number of calls to the provider; 0 if they are paid for
--     mailbox    number of its mailbox; 0 without
--     lease      name of its lease and, as a probe, of its job
-- Reply    for each call four values: milliseconds to wait (0 or less: call now), 1 if its cost is now paid, the
--          reason (WaitReason), and 1 if its success must be recorded for the circuit breakers
--
-- The value of a scope is 'paced held named': when the permitted calls end at an even pace, the end of a backoff,
-- and the end of a backoff that the provider has named.

-- include coordination/scripts/clock.lua
-- include coordination/scripts/breaker.lua

local arguments = cjson.decode(ARGV[1])
local now, left, lease = arguments.now or clock(), arguments.left, arguments.lease
local first_breaker, first_mailbox = #arguments.scopes, #arguments.scopes + arguments.breakers
local values = redis.call('MGET', unpack(KEYS, 1, first_mailbox))
local scopes, breakers = {}, {}
for n, scope in ipairs(arguments.scopes) do
    local paced, held, named = string.match(values[n] or '0 0 0', '^(%S+) (%S+) (%S+)$')
    scope.paced, scope.held, scope.named = tonumber(paced), tonumber(held), tonumber(named)
    scopes[n] = scope
end
for n = 1, arguments.breakers do breakers[n] = decode_breaker(values[first_breaker + n]) end

-- Whether the job has a lease of the mailbox.
local function acquire_lease(mailbox, job)
    if redis.call('ZCARD', mailbox) >= arguments.concurrent then
        redis.call('ZREMRANGEBYSCORE', mailbox, '-inf', now)
        -- A job that has the lease already keeps it.
        if redis.call('ZCARD', mailbox) >= arguments.concurrent and not redis.call('ZSCORE', mailbox, job) then
            return false
        end
    end
    redis.call('ZADD', mailbox, now + lease, job)
    redis.call('PEXPIRE', mailbox, math.max(lease, arguments.leases_kept))
    return true
end

local replies = {}
for _, call in ipairs(arguments.calls) do
    local cost, refused, held, named, delay = call.cost, 0, 0, 0, 0
    for _, number in ipairs(call.breakers) do
        refused = math.max(refused, refused_for(breakers[number], call.lease, now, arguments.probe_retry))
    end
    for _, number in ipairs(call.scopes) do
        local scope = scopes[number]
        held = math.max(held, scope.held - now)
        named = math.max(named, scope.named - now)
        scope.after = math.max(scope.paced, now) + math.min(cost * scope.interval, scope.tolerance)
        delay = math.max(delay, scope.after - scope.tolerance - now)
    end
    local wait, paid, reason = 0, 0, 'pace'
    if refused > 0 then
        wait, reason = refused, 'open'
    elseif held > 0 then
        wait, reason = held, held > named and 'backoff' or 'named'
    elseif cost > 0 and delay > math.min(arguments.horizon, left) then
        wait = delay > left and delay or arguments.retry
    elseif cost > 0 then
        wait, paid = delay, 1
        for _, number in ipairs(call.scopes) do
            local scope = scopes[number]
            scope.paced, scope.changed = scope.after, true
        end
    end
    if wait <= 0 and call.mailbox > 0 and not acquire_lease(KEYS[first_mailbox + call.mailbox], call.lease) then
        wait, reason = arguments.lease_retry, 'mailbox'
    end
    if wait <= 0 then
        local account = KEYS[first_breaker + call.breakers[2]]
        for _, number in ipairs(call.breakers) do
            local breaker = breakers[number]
            if breaker.retry_at then
                breaker.probe, breaker.account, breaker.probe_until = call.lease, account, now + lease
                redis.call('SET', KEYS[first_breaker + number], cjson.encode(breaker), 'KEEPTTL')
                reason = 'probe'
            end
        end
    end
    local recorded = reason == 'probe' or values[first_breaker + call.breakers[2]]
    for _, value in ipairs({math.ceil(wait), paid, reason, recorded and 1 or 0}) do
        replies[#replies + 1] = value
    end
end
for n, scope in ipairs(scopes) do
    if scope.changed then
        local value = string.format('%.6f %.6f %.6f', scope.paced, scope.held, scope.named)
        local lifetime = math.ceil(math.max(scope.paced, scope.held) - now) + 1
        redis.call('SET', KEYS[n], value, 'PX', lifetime)
    end
end
return replies
