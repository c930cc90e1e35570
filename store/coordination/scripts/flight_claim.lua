-- Claims reads for a request: it leads a new flight, follows one in progress, or gets a completed result.
--
-- KEYS[n]  generation of the connection of read n
-- ARGV[1]  JSON object; times in milliseconds:
--   now                 current time of the request
--   newer_than          reads that were claimed before this time are not used
--   failure_lifetime    how long a failure is returned to further claims
--   began               when the request began; results completed before it are left to the cache
--   lease               lease of a new flight
--   waiter              the request's reply list, or '' if it cannot follow
--   unique              a random text, for new flights and generations
--   generation_seconds  lifetime of a new generation
--   keep, keep_failed   how long a new flight keeps its result, and its failure
--   findable            how long a new flight can be found by its read
--   reads               list of {name, number, following}: the read's name, its number in the request, and the
--                       flight that the request follows already or ''
-- Reply    for each read {state, value}:
--   {0, ''}      bypass: the read in progress began before newer_than
--   {1, flight}  leader of a new flight
--   {2, flight}  follower of a flight in progress
--   {3, result}  completed
--
-- Hash 'flight:<name>' of a flight in progress: at (time of the claim), keep and retell (keep_failed), young and for (set
-- by flight_probe.lua), and a field '<reply list>|<number>' for each follower. Of a completed flight: at,
-- landed (time of its completion), failed ('1' or '0') and body.

-- include coordination/scripts/clock.lua
-- include cache/scripts/generation.lua

local request = cjson.decode(ARGV[1])

-- Whether a probe is no longer young, so that only its own request waits for it.
local function is_old(young_until) return young_until and tonumber(young_until) <= clock() end

local replies = {}
for n, generation_key in ipairs(KEYS) do
    local read = request.reads[n]
    local follower = request.waiter .. '|' .. read.number
    local followed = 'flight:' .. read.following
    local kept = redis.call('HMGET', followed, follower, 'landed', 'young', 'for')
    local follows = kept[1]
    if follows and not kept[2] and (kept[4] == request.waiter or not is_old(kept[3])) then
        replies[n] = {2, read.following}
    else
        -- The followed flight has completed, or is an old probe: stop following it.
        if follows then redis.call('HDEL', followed, follower) end
        local generation = connection_generation(generation_key, request.unique, request.generation_seconds)
        local pointer = 'flight-of:' .. read.name .. ':' .. generation
        local flight = redis.call('GET', pointer) or ''
        local found = redis.call('HMGET', 'flight:' .. flight, 'at', 'landed', 'failed', 'young')
        local at, landed = tonumber(found[1]), tonumber(found[2])
        local recent_failure = found[3] == '1' and clock() - landed < request.failure_lifetime
        if landed and at >= request.newer_than and (landed >= request.began or recent_failure) then
            replies[n] = {3, redis.call('HGET', 'flight:' .. flight, 'body')}
        elseif at and not landed and at < request.newer_than then
            replies[n] = {0, ''}
        else
            if landed or not at or is_old(found[4]) then
                flight = request.unique .. '-' .. n
                redis.call('SET', pointer, flight, 'PX', request.findable)
                redis.call('HSET', 'flight:' .. flight, 'at', request.now, 'keep', request.keep,
                    'retell', request.keep_failed)
                redis.call('PEXPIRE', 'flight:' .. flight, request.lease)
                replies[n] = {1, flight}
            else
                replies[n] = {2, flight}
            end
            if request.waiter ~= '' then
                redis.call('HSET', 'flight:' .. flight, follower, read.number)
            end
        end
    end
end
return replies
