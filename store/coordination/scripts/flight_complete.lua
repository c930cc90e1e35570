-- Completes flights: pushes each result to the reply lists of the followers and keeps it. A flight that has
-- expired is ignored. flight_claim.lua describes the hashes.
--
-- KEYS[n]    flight n
-- ARGV[1]    JSON object:
--   except     reply list that gets no reply, because it was answered already
--   leftover   seconds after which a reply list that is not fetched expires
--   flights    list of {failed, whole} for each flight: whether it counts as a failure for the next requests,
--              and whether no part of it has failed
-- ARGV[n+1]  result of flight n
-- Reply      none

-- include coordination/scripts/clock.lua

local arguments = cjson.decode(ARGV[1])
local landed = clock()
for n, key in ipairs(KEYS) do
    local flight, body = arguments.flights[n], ARGV[n + 1]
    local fields = redis.call('HGETALL', key)
    local at, keep, keep_failed
    for i = 1, #fields, 2 do
        local name, value = fields[i], fields[i + 1]
        local split = string.find(name, '|', 1, true)
        if name == 'at' then
            at = value
        elseif name == 'keep' then
            keep = value
        elseif name == 'retell' then
            keep_failed = value
        elseif split and string.sub(name, 1, split - 1) ~= arguments.except then
            local replies = string.sub(name, 1, split - 1)
            redis.call('RPUSH', replies, struct.pack('<I4', tonumber(value)) .. body)
            redis.call('EXPIRE', replies, arguments.leftover)
        end
    end
    if keep then
        redis.call('DEL', key)
        redis.call('HSET', key, 'at', at, 'landed', landed, 'failed', flight.failed and 1 or 0, 'body', body)
        redis.call('PEXPIRE', key, flight.whole and keep or keep_failed)
    end
end
