-- Begins reads: looks up the generations of their connections, and registers the connections as readers of tags.
--
-- KEYS     generations, then the reader sets of tags, then for each of those the event writes under way
-- ARGV[1]  JSON object:
--   generation          the generation of connections without one
--   generation_seconds  its lifetime
--   readers_seconds     lifetime of the reader sets
--   connections         number of generations
--   readers             list of new members for each reader set
-- Reply    the generation under each key; 'uncached' for a connection that reads under a tag of a write under way

local arguments = cjson.decode(ARGV[1])
local found = redis.call('MGET', unpack(KEYS, 1, arguments.connections))
for n, generation in ipairs(found) do
    if not generation then
        found[n] = arguments.generation
        redis.call('SET', KEYS[n], found[n], 'EX', arguments.generation_seconds)
    end
end
local writes = arguments.connections + #arguments.readers
local overlaps = {}
for n, readers in ipairs(arguments.readers) do
    local key = KEYS[arguments.connections + n]
    redis.call('SADD', key, unpack(readers))
    redis.call('EXPIRE', key, arguments.readers_seconds)
    if redis.call('EXISTS', KEYS[writes + n]) == 1 then
        for _, reader in ipairs(readers) do
            overlaps['busy-generation:' .. string.match(reader, '^[^:]*')] = true
        end
    end
end
for n = 1, arguments.connections do
    if overlaps[KEYS[n]] then found[n] = 'uncached' end
end
return found
