-- Records a failed call and opens the breakers that reach their limits. breaker.lua describes the hashes.
--
-- KEYS[1]  breaker of the provider
-- KEYS[2]  breaker of the account
-- KEYS[3]  time of the provider's last answer
-- ARGV[1]  JSON object; times in milliseconds:
--   now         current time; Redis's clock if absent
--   given_up    whether the call counts even if it was no probe
--   accounts    number of failing accounts that opens the provider's breaker; 0: never
--   failures    number of failures that opens the account's breaker; 0: never
--   pause       pause of an open breaker
--   remembered  how long the counts are kept after the last failure
--   took        how long ago the call began
-- Reply    {provider's open, account's open, provider's just opened, account's just opened}, each 1 or 0

-- include coordination/scripts/clock.lua

local arguments = cjson.decode(ARGV[1])
-- Whole milliseconds, which are stored without loss of digits.
local now = arguments.now or math.floor(clock())
local provider, account, last_answer = KEYS[1], KEYS[2], KEYS[3]
local breakers, limits = {provider, account}, {arguments.accounts, arguments.failures}
local remembered = arguments.remembered
local probed = {}
for n, key in ipairs(breakers) do
    local kept = redis.call('HMGET', key, 'trying', 'account')
    probed[n] = kept[2] == account and tonumber(kept[1]) > now
end
local counts = {0, 0}
if arguments.given_up or probed[1] or probed[2] then
    counts[2] = redis.call('HINCRBY', account, 'failures', 1)
    local answered_since = tonumber(redis.call('GET', last_answer) or 0) > now - arguments.took
    if not answered_since and redis.call('HSETNX', account, 'counted', 1) == 1 then
        redis.call('SADD', provider .. ':failing', account)
    end
    counts[1] = redis.call('SCARD', provider .. ':failing')
    for _, key in ipairs({account, provider, provider .. ':failing'}) do
        redis.call('PEXPIRE', key, remembered)
    end
end
local reply = {}
for n, key in ipairs(breakers) do
    local open = redis.call('HEXISTS', key, 'until')
    local opens = open == 0 and limits[n] > 0 and counts[n] >= limits[n]
    if opens or probed[n] then
        redis.call('HSETNX', key, 'since', now)
        redis.call('HSET', key, 'until', now + arguments.pause)
        redis.call('HDEL', key, 'trying', 'by', 'account', 'young')
        redis.call('PEXPIRE', key, remembered)
        if n == 2 then
            redis.call('ZREMRANGEBYSCORE', provider .. ':open', '-inf', now)
            redis.call('ZADD', provider .. ':open', now + remembered, account)
            redis.call('PEXPIRE', provider .. ':open', remembered)
        end
    end
    reply[n] = (open == 1 or opens) and 1 or 0
    reply[n + 2] = opens and 1 or 0
end
return reply
