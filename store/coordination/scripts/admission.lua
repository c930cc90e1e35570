-- Admits a request to the queue of requests that wait for workers, or only checks whether it would be admitted.
--
-- KEYS[1]  sorted set of the waiting requests as 'tenant:name', scored by the end of their leases in milliseconds
-- KEYS[2]  hash of the workers' heartbeats: 'seconds:used threads:threads'
-- ARGV[1]  JSON object:
--   tenant   the tenant of the request
--   name     name of the request
--   lease    milliseconds of its lease; 0 only checks
--   limit    number of requests that may wait
--   share    number of requests of one tenant that may wait
--   away     seconds since the last heartbeat after which the workers are considered gone
-- Reply    1: admitted (or would be); 0: the queue is full; -1: all workers are gone;
--          -2: the tenant's share is used up

-- include coordination/scripts/clock.lua

local arguments = cjson.decode(ARGV[1])
local now = math.floor(clock())
local last_heartbeat = 0
for _, heartbeat in ipairs(redis.call('HVALS', KEYS[2])) do
    last_heartbeat = math.max(last_heartbeat, tonumber(string.match(heartbeat, '^[^:]+')) * 1000)
end
if last_heartbeat > 0 and now - last_heartbeat > arguments.away * 1000 then return -1 end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local prefix = arguments.tenant .. ':'
local waiting = redis.call('ZCARD', KEYS[1])
-- A tenant's requests need to be counted only if all requests together are as many as a share. A share of
-- everything is none.
if waiting >= arguments.share and arguments.share < arguments.limit then
    local own = 0
    for _, each in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
        if string.sub(each, 1, #prefix) == prefix then own = own + 1 end
    end
    if own >= arguments.share then return -2 end
end
if waiting >= arguments.limit then return 0 end
if arguments.lease == 0 then return 1 end
redis.call('ZADD', KEYS[1], now + arguments.lease, prefix .. arguments.name)
if redis.call('PTTL', KEYS[1]) < arguments.lease then redis.call('PEXPIRE', KEYS[1], arguments.lease) end
return 1
