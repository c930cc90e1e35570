-- Generations of connections, for scripts that look them up.

-- The generation under the key. If there is none, it is set to 'new' for so many seconds.
local function connection_generation(key, new, seconds)
    local generation = redis.call('GET', key)
    if not generation then
        generation = new
        redis.call('SET', key, new, 'EX', seconds)
    end
    return generation
end
