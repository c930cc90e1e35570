-- Records answered calls: closes the accounts' breakers, and the provider's if one of the calls was its probe.
--
-- KEYS[1]   breaker of the provider
-- KEYS[2]   time of the provider's last answer
-- KEYS[3+]  breakers of the accounts that were answered
-- ARGV[1]   JSON object; times in milliseconds:
--   now         current time; Redis's clock if absent
--   remembered  how long the time of the last answer is kept
--   ago         how long ago the last of these calls was answered
-- Reply     none

-- include coordination/scripts/clock.lua

local arguments = cjson.decode(ARGV[1])
local now = arguments.now or math.floor(clock())
local provider, failing, open = KEYS[1], KEYS[1] .. ':failing', KEYS[1] .. ':open'
local kept = redis.call('HMGET', provider, 'until', 'account')
local is_open, probing_account = kept[1], kept[2]
local last = math.max(now - arguments.ago, tonumber(redis.call('GET', KEYS[2])) or 0)
redis.call('SET', KEYS[2], last, 'PX', arguments.remembered)
for n = 3, #KEYS do
    local account = KEYS[n]
    if redis.call('DEL', account) == 1 then redis.call('ZREM', open, account) end
    if is_open and probing_account == account then
        -- The failures of accounts in the meantime were the provider's fault.
        for _, each in ipairs(redis.call('SMEMBERS', failing)) do
            redis.call('DEL', each)
            redis.call('ZREM', open, each)
        end
        redis.call('DEL', provider)
        is_open = false
    end
end
if not is_open then redis.call('DEL', failing) end
