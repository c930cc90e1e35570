-- Reader sets, and the cached calendars of the connections in them.

-- The connections in the reader sets of tags: true for one of which all calendars are meant, else the prefixes
-- of the buckets of the calendars that are. The first `mailboxes` sets have connections, the others have
-- '<connection>:<calendar>'. All calendars of `connections` are meant too.
local function connections_in(sets, mailboxes, connections)
    local found = {}
    for _, connection in ipairs(connections) do found[connection] = true end
    for n, set in ipairs(sets) do
        for _, reader in ipairs(redis.call('SMEMBERS', set)) do
            if n <= mailboxes then
                found[reader] = true
            else
                local connection = string.match(reader, '^[^:]*')
                found[connection] = found[connection] or {}
                if found[connection] ~= true then table.insert(found[connection], 'busy:' .. reader .. ':') end
            end
        end
    end
    return found
end

-- The cached buckets of a connection that have one of these prefixes; all if `prefixes` is true.
local function buckets_of(connection, prefixes)
    local all = redis.call('SMEMBERS', 'busy-of:' .. connection)
    if prefixes == true then return all end
    local found = {}
    for _, bucket in ipairs(all) do
        for _, prefix in ipairs(prefixes) do
            if string.sub(bucket, 1, #prefix) == prefix then
                found[#found + 1] = bucket
                break
            end
        end
    end
    return found
end

local function replace_generation(connection, generation, seconds)
    local key = 'busy-generation:' .. connection
    -- First a command that needs no memory: a full Redis then permits the others.
    redis.call('DEL', key)
    redis.call('SET', key, generation, 'EX', seconds)
end
