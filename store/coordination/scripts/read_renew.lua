-- Renews the locks of reads that are under way.
--
-- KEYS[n]    lock of read n (read_take.lua)
-- ARGV[1]    milliseconds until it expires
-- ARGV[n+1]  the job that had the lock; one that another job has taken over is not renewed
-- Reply      none

for n, lock in ipairs(KEYS) do
    if string.match(redis.call('GET', lock) or '', '(%S+)$') == ARGV[n + 1] then
        redis.call('PEXPIRE', lock, ARGV[1])
    end
end
