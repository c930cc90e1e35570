-- Records a failed call: opens the circuit breakers that reach their limits, and again those that it has tested.
--
-- KEYS[1], KEYS[2]  records of the provider and of the account (limits.lua)
-- KEYS[3]  time of the provider's last answer
-- KEYS[4]  sorted set of the accounts that failed, scored by the time of the failure
-- KEYS[5]  sorted set of the accounts whose circuit breakers are open, scored by the time at which they are forgotten
-- ARGV[1]  JSON object; times in milliseconds:
--   now       current time; Redis's clock if absent
--   account   name of the account
--   given_up  whether the call counts even if it has tested no open circuit breaker
--   accounts  number of failing accounts that opens the provider's circuit breaker; 0: never
--   failures  number of failures that opens the account's; 0: never
--   pause     pause of an open circuit breaker
--   took      how long ago the call began
--   answered  how long ago the provider last answered the caller; absent: not known
-- Reply    {1 if the provider's or the account's is open, 1 if the provider's just opened, 1 if the account's did,
--          milliseconds for which a pause that the provider has named lasts}

-- include coordination/scripts/clock.lua
-- include coordination/scripts/limits.lua

local arguments = cjson.decode(ARGV[1])
local now = math.floor(arguments.now or clock())
local values = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
local provider, account = decode(values[1]), decode(values[2])
local began, answered = now - arguments.took, math.max(tonumber(values[3] or 0), now - (arguments.answered or now))

-- Whether the call tests an open circuit breaker: others have begun before it opened.
local function tests(record) return is_probed(record) and began >= record.since end

-- The number of accounts that failed since the last answer, with this one.
local function count_failing()
    redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', '(' .. answered)
    redis.call('ZADD', KEYS[4], now, arguments.account)
    redis.call('PEXPIRE', KEYS[4], REMEMBERED)
    return redis.call('ZCARD', KEYS[4])
end

local function open(key, record)
    if record.since == 0 then record.since = now end
    if is_probed(record) then record.ends = 0 end
    pause(record, now + arguments.pause, 'open')
    store(key, record, now)
end

local provider_opens, account_opens = false, false
if arguments.given_up or tests(provider) or tests(account) then
    local stands_for_provider = answered <= began and account.since == 0 and provider.since == 0
    provider_opens = arguments.accounts > 0 and stands_for_provider and count_failing() >= arguments.accounts
    account.failures = account.failures + 1
    account_opens = arguments.failures > 0 and account.since == 0 and account.failures >= arguments.failures
    if account_opens or tests(account) then
        open(KEYS[2], account)
        redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now)
        redis.call('ZADD', KEYS[5], now + REMEMBERED, arguments.account)
        redis.call('PEXPIRE', KEYS[5], REMEMBERED)
    else
        store(KEYS[2], account, now)
    end
    if provider_opens or tests(provider) then open(KEYS[1], provider) end
end
local is_open = provider.since > 0 or account.since > 0
local held = math.max(named(provider, now), named(account, now))
return {is_open and 1 or 0, provider_opens and 1 or 0, account_opens and 1 or 0, held}
