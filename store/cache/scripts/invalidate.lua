-- Invalidates the connections and calendars in reader sets, and some connections entirely. Invalidated
-- connections get a new generation, so that reads in progress are not stored.
--
-- KEYS     reader sets: first those of mailboxes, whose members are connections, then those of calendars, whose
--          members are '<connection>:<calendar>'. They are deleted.
-- ARGV[1]  JSON object:
--   generation          the new generation
--   generation_seconds  its lifetime
--   mailboxes           number of reader sets of mailboxes
--   connections         list of connections to invalidate entirely
-- Reply    none

-- include cache/scripts/readers.lua

local arguments = cjson.decode(ARGV[1])
local found = connections_in(KEYS, arguments.mailboxes, arguments.connections)
for _, key in ipairs(KEYS) do redis.call('DEL', key) end
for connection, prefixes in pairs(found) do
    local index = 'busy-of:' .. connection
    replace_generation(connection, arguments.generation, arguments.generation_seconds)
    for _, bucket in ipairs(buckets_of(connection, prefixes)) do
        redis.call('DEL', bucket)
        redis.call('SREM', index, bucket)
    end
end
