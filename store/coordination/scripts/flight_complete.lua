-- Completes flights: keeps each result and pushes it to the reply lists of the leader and the followers. For a
-- flight that has expired, only the leader gets the result; its followers claim again. flight_claim.lua describes the values.
--
-- KEYS       the keys of the flights, then their sets of followers
-- ARGV[1]    JSON object:
--   replies    reply list of the leader
--   leftover   seconds after which a reply list that is not fetched expires
--   flights    list of {id, failed, whole, number} for each flight: whether it counts as a failure for the next
--              requests, whether no part of it has failed, and its number in the leader's request, absent if the
--              leader was answered before
-- ARGV[n+1]  result of flight n
-- Reply      none

-- include coordination/scripts/clock.lua

local arguments = cjson.decode(ARGV[1])
local now, count = clock(), #arguments.flights
local values = redis.call('MGET', unpack(KEYS, 1, count))

local function encode(number, body) return struct.pack('<I4', tonumber(number)) .. body end

local function push(list, replies)
    redis.call('RPUSH', list, unpack(replies))
    redis.call('EXPIRE', list, arguments.leftover)
end

local replies = {}
for n, completion in ipairs(arguments.flights) do
    if completion.number then replies[#replies + 1] = encode(completion.number, ARGV[n + 1]) end
end
if #replies > 0 then push(arguments.replies, replies) end
local any_followers = redis.call('EXISTS', unpack(KEYS, count + 1)) > 0
for n, completion in ipairs(arguments.flights) do
    local flight, body = values[n] and cmsgpack.unpack(values[n]), ARGV[n + 1]
    if flight and flight.id == completion.id and not flight.completed then
        local kept = {id = flight.id, at = flight.at, completed = now, failed = completion.failed, body = body}
        local lifetime = completion.whole and flight.keep or flight.keep_failed
        redis.call('SET', KEYS[n], cmsgpack.pack(kept), 'PX', lifetime)
        local followers = any_followers and redis.call('SMEMBERS', KEYS[count + n]) or {}
        for _, follower in ipairs(followers) do
            local list, number = string.match(follower, '^(.*)|(%d+)$')
            push(list, {encode(number, body)})
        end
        if #followers > 0 then redis.call('DEL', KEYS[count + n]) end
    end
end
