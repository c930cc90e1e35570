-- Takes the locks of reads. A read that another job has under way is waited for; one that has just ended is answered.
--
-- KEYS[3n-2]  generation of the connection of read n
-- KEYS[3n-1]  lock of read n: 'sent generation holder'
-- KEYS[3n]    last result of read n: hash with generation, sent, holder, ended, failed and body (read_end.lua)
-- ARGV[1]     JSON object; times in milliseconds:
--   sent                when the request sent its jobs, by its own clock
--   newer_than          reads that were sent before this time are not used
--   began               when the request looked into the cache: results that ended before it are left to the cache
--   failure_lifetime    how long a failure is returned to later requests
--   lease               lifetime of a lock until it is renewed
--   unique              a random text, for a new generation
--   generation_seconds  lifetime of a new generation
--   reads               list of {holder, following}: the job that takes the lock, and the holder for which it
--                       already waits or ''
-- Reply       for each read {state, value}:
--   {0, holder}      the read is under way
--   {1, generation}  the job has the lock
--   {2, body}        the result

-- include coordination/scripts/clock.lua

local request, now, replies = cjson.decode(ARGV[1]), clock(), {}

local function usable(last, generation, following)
    if not last[1] or tonumber(last[2]) < request.newer_than then return false end
    -- The end of a read that a job waits for answers the job, even if a write has replaced the generation.
    if last[3] == following then return true end
    local age = now - tonumber(last[4])
    local recent_failure = last[5] == '1' and age < request.failure_lifetime
    return last[1] == generation and (tonumber(last[4]) >= request.began or recent_failure)
end

for n, read in ipairs(request.reads) do
    local lock, result = KEYS[3 * n - 1], KEYS[3 * n]
    local generation = redis.call('GET', KEYS[3 * n - 2])
    if not generation then
        generation = request.unique
        redis.call('SET', KEYS[3 * n - 2], generation, 'EX', request.generation_seconds)
    end
    local last = redis.call('HMGET', result, 'generation', 'sent', 'holder', 'ended', 'failed')
    if usable(last, generation, read.following) then
        replies[n] = {2, redis.call('HGET', result, 'body')}
    else
        local sent, begun_in, holder = string.match(redis.call('GET', lock) or '', '^(%S+) (%S+) (%S+)$')
        local joined = holder and tonumber(sent) >= request.newer_than and begun_in == generation
        if holder and holder ~= read.holder and (joined or holder == read.following) then
            replies[n] = {0, holder}
        else
            local value = string.format('%.0f %s %s', request.sent, generation, read.holder)
            redis.call('SET', lock, value, 'PX', request.lease)
            replies[n] = {1, generation}
        end
    end
end
return replies
