-- Records a failed call. Opens the breakers that reach their limits, and reopens those whose probe it was.
--
-- KEYS[1]  breaker of the provider
-- KEYS[2]  breaker of the account
-- KEYS[3]  time of the provider's last answer
-- KEYS[4]  sorted set of the open breakers of accounts, scored by the time at which they are forgotten
-- ARGV[1]  JSON object; times in milliseconds:
--   now         current time; Redis's clock if absent
--   given_up    whether the call counts even if it was no probe
--   accounts    number of failing accounts that opens the provider's breaker; 0: never
--   failures    number of failures that opens the account's breaker; 0: never
--   pause       pause of an open breaker
--   remembered  how long a breaker is kept after its last failure
--   took        how long ago the call began
--   answered    how long ago the provider last answered the caller; absent: not known
-- Reply    {provider's open, account's open, provider's just opened, account's just opened}, each 1 or 0

-- include coordination/scripts/clock.lua
-- include coordination/scripts/breaker.lua

local arguments = cjson.decode(ARGV[1])
local now, remembered = arguments.now or math.floor(clock()), arguments.remembered
local kept = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
local provider, account = decode_breaker(kept[1]), decode_breaker(kept[2])
local provider_probed, account_probed = is_probe(provider, KEYS[2], now), is_probe(account, KEYS[2], now)
local answered_at = math.max(tonumber(kept[3]) or 0, arguments.answered and now - arguments.answered or 0)

-- The number of failing accounts, with this one.
local function count_account()
    if not provider.failing or answered_at > provider.failed_at then provider.failing = {} end
    provider.failing[KEYS[2]], provider.failed_at = true, now
    local count = 0
    for _ in pairs(provider.failing) do count = count + 1 end
    return count
end

local function open(breaker)
    breaker.since, breaker.retry_at = breaker.since or now, now + arguments.pause
    end_probe(breaker)
end

local function store(key, breaker) redis.call('SET', key, cjson.encode(breaker), 'PX', remembered) end

local provider_opens, account_opens = false, false
if arguments.given_up or provider_probed or account_probed then
    local stands_for_provider = answered_at <= now - arguments.took and not account.retry_at
    if arguments.accounts > 0 and not provider.retry_at and stands_for_provider then
        provider_opens = count_account() >= arguments.accounts
        if not provider_opens then store(KEYS[1], provider) end
    end
    account.failures = (account.failures or 0) + 1
    account_opens = not account.retry_at and arguments.failures > 0 and account.failures >= arguments.failures
    if account_opens or account_probed then
        open(account)
        redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
        redis.call('ZADD', KEYS[4], now + remembered, KEYS[2])
        redis.call('PEXPIRE', KEYS[4], remembered)
    end
    store(KEYS[2], account)
    if provider_opens or provider_probed then
        provider.failing = nil
        open(provider)
        store(KEYS[1], provider)
    end
end
local function flag(value) return value and 1 or 0 end
return {flag(provider.retry_at), flag(account.retry_at), flag(provider_opens), flag(account_opens)}
