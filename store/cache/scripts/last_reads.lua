-- Notes what reads of main calendars have found. What an earlier read found does not replace a later one.
--
-- KEYS     last read of each connection, and the set of those whose last read failed, by the begin of the failures
-- ARGV[1]  JSON object:
--   reads    for each connection: its id, milliseconds since 1970, the reason of a failure ('' for none), its message,
--            and the provider
--   seconds  lifetime of the keys
-- Reply    none

local arguments = cjson.decode(ARGV[1])
local failing = KEYS[#KEYS]
for number, read in ipairs(arguments.reads) do
    local key = KEYS[number]
    local id, at, reason, message, provider = unpack(read)
    local last = redis.call('HGET', key, 'at')
    if not last or tonumber(last) <= tonumber(at) then
        if reason == '' then
            redis.call('DEL', key)
            redis.call('HSET', key, 'at', at)
            redis.call('ZREM', failing, id)
        else
            redis.call('HSET', key, 'at', at, 'reason', reason, 'message', message, 'provider', provider)
            -- The first failure of a run begins it.
            redis.call('HSETNX', key, 'since', at)
            redis.call('ZADD', failing, 'NX', at, id)
        end
        redis.call('EXPIRE', key, arguments.seconds)
    end
end
