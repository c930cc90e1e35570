-- Begins reads: looks up the generations of their connections, and registers the connections as readers of tags.
--
-- KEYS     generations, then reader sets
-- ARGV[1]  JSON object:
--   generation          the generation of connections without one
--   generation_seconds  its lifetime
--   readers_seconds     lifetime of the reader sets
--   connections         number of generations
--   readers             list of new members for each reader set
-- Reply    the generation under each key

local arguments = cjson.decode(ARGV[1])
local found = redis.call('MGET', unpack(KEYS, 1, arguments.connections))
for n, generation in ipairs(found) do
    if not generation then
        found[n] = arguments.generation
        redis.call('SET', KEYS[n], found[n], 'EX', arguments.generation_seconds)
    end
end
for n, readers in ipairs(arguments.readers) do
    local key = KEYS[arguments.connections + n]
    redis.call('SADD', key, unpack(readers))
    redis.call('EXPIRE', key, arguments.readers_seconds)
end
return found
