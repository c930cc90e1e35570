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

local arguments = cjson.decode(ARGV[1])
-- Connections to invalidate entirely, and for the others the prefixes of the buckets to delete.
local entire, prefixes_of = {}, {}
for _, connection in ipairs(arguments.connections) do entire[connection] = true end
for n, key in ipairs(KEYS) do
    for _, reader in ipairs(redis.call('SMEMBERS', key)) do
        if n <= arguments.mailboxes then
            entire[reader] = true
        else
            local connection = string.match(reader, '^[^:]*')
            prefixes_of[connection] = prefixes_of[connection] or {}
            table.insert(prefixes_of[connection], 'busy:' .. reader .. ':')
        end
    end
    redis.call('DEL', key)
end

local function replace_generation(connection)
    local key = 'busy-generation:' .. connection
    -- First a command that needs no memory: a full Redis then permits the others.
    redis.call('DEL', key)
    redis.call('SET', key, arguments.generation, 'EX', arguments.generation_seconds)
end

for connection, prefixes in pairs(prefixes_of) do
    if not entire[connection] then
        local index = 'busy-of:' .. connection
        replace_generation(connection)
        for _, bucket in ipairs(redis.call('SMEMBERS', index)) do
            for _, prefix in ipairs(prefixes) do
                if string.sub(bucket, 1, #prefix) == prefix then
                    redis.call('DEL', bucket)
                    redis.call('SREM', index, bucket)
                end
            end
        end
    end
end
for connection in pairs(entire) do
    local index = 'busy-of:' .. connection
    replace_generation(connection)
    for _, bucket in ipairs(redis.call('SMEMBERS', index)) do redis.call('DEL', bucket) end
    redis.call('DEL', index)
end
