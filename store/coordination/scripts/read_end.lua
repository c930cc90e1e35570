-- Records the results of reads for the jobs that wait for them, and releases their locks.
--
-- KEYS[2n-1]  lock of read n (read_take.lua)
-- KEYS[2n]    last result of read n
-- ARGV[1]     JSON object; times in milliseconds:
--   reads       list of {holder, generation, sent, failed, lifetime}: the job that had the lock, the generation
--               that it got with it, whether it counts as a failure for later requests, and how long its result is
--               kept; 0: it has none
-- ARGV[n+1]   result of read n
-- Reply       none

-- include coordination/scripts/clock.lua

local now = clock()
for n, read in ipairs(cjson.decode(ARGV[1]).reads) do
    local lock, result = KEYS[2 * n - 1], KEYS[2 * n]
    if read.lifetime > 0 and read.sent >= tonumber(redis.call('HGET', result, 'sent') or 0) then
        redis.call('HSET', result, 'generation', read.generation, 'sent', string.format('%.0f', read.sent),
            'holder', read.holder, 'ended', now, 'failed', read.failed and 1 or 0, 'body', ARGV[n + 1])
        redis.call('PEXPIRE', result, read.lifetime)
    end
    if string.match(redis.call('GET', lock) or '', '(%S+)$') == read.holder then redis.call('DEL', lock) end
end
