-- Claims reads for a request: it leads a new flight, follows one in progress, or gets a completed result.
--
-- KEYS[n]  generation of the connection of read n
-- ARGV[1]  JSON object; times in milliseconds:
--   claimed_at          when the request sends this claim, by its own clock
--   newer_than          reads that were claimed before this time are not used
--   failure_lifetime    how long a failure is returned to further claims
--   began               when the request began; results completed before it are left to the cache
--   lease               lease of a new flight
--   waiter              the request's reply list, or '' if it cannot follow
--   unique              a random text, for new flights and generations
--   generation_seconds  lifetime of a new generation
--   keep, keep_failed   how long a new flight keeps its result, and its failure
--   followed            how long a set of followers is kept
--   reads               list of {name, number, following}: the read's name, its number in the request, and the
--                       flight that the request follows already or ''
-- Reply    for each read {state, value}:
--   {0, ''}      bypass: the read in progress was claimed before newer_than
--   {1, flight}  leader of a new flight
--   {2, flight}  follower of a flight in progress
--   {3, result}  completed
--
-- The flight '<read>:<generation>:<unique>' is kept under the key 'flight:<read>:<generation>', in MessagePack.
-- In progress it has id, at (time of the claim), keep and keep_failed. Completed it has id, at, completed (the
-- time), failed and body. Its followers are in the set 'flight-followers:<flight>' as '<reply list>|<number>'.

-- include coordination/scripts/clock.lua

local request = cjson.decode(ARGV[1])
local now = clock()

local function key_of(flight) return 'flight:' .. string.match(flight, '^(.*):') end

local keys, wanted = {}, {}
for n, generation in ipairs(redis.call('MGET', unpack(KEYS))) do
    if not generation then
        generation = request.unique
        redis.call('SET', KEYS[n], generation, 'EX', request.generation_seconds)
    end
    keys[n] = 'flight:' .. request.reads[n].name .. ':' .. generation
    wanted[#wanted + 1] = keys[n]
    if request.reads[n].following ~= '' then wanted[#wanted + 1] = key_of(request.reads[n].following) end
end
local flights = {}
for n, value in ipairs(redis.call('MGET', unpack(wanted))) do
    flights[wanted[n]] = value and cmsgpack.unpack(value)
end

local function lead(key, n)
    local id = string.sub(key, #'flight:' + 1) .. ':' .. request.unique .. '-' .. n
    local flight = {id = id, at = request.claimed_at, keep = request.keep, keep_failed = request.keep_failed}
    flights[key] = flight
    redis.call('SET', key, cmsgpack.pack(flight), 'PX', request.lease)
    return {1, id}
end

local function follow(flight, number)
    if request.waiter ~= '' then
        local followers = 'flight-followers:' .. flight.id
        redis.call('SADD', followers, request.waiter .. '|' .. number)
        redis.call('PEXPIRE', followers, request.followed)
    end
    return {2, flight.id}
end

local replies = {}
for n, read in ipairs(request.reads) do
    local followed = read.following ~= '' and flights[key_of(read.following)]
    local flight = flights[keys[n]]
    if followed and followed.id == read.following and not followed.completed then
        replies[n] = {2, read.following}
    elseif not flight then
        replies[n] = lead(keys[n], n)
    elseif flight.completed then
        local recent_failure = flight.failed and now - flight.completed < request.failure_lifetime
        local usable = flight.completed >= request.began or recent_failure
        replies[n] = flight.at >= request.newer_than and usable and {3, flight.body} or lead(keys[n], n)
    elseif flight.at < request.newer_than then
        replies[n] = {0, ''}
    else
        replies[n] = follow(flight, read.number)
    end
end
return replies
