-- Ends a job's probe without a result, so that another job may probe.
--
-- KEYS     breakers
-- ARGV[1]  name of the job
-- Reply    none

for _, key in ipairs(KEYS) do
    if redis.call('HGET', key, 'by') == ARGV[1] then
        redis.call('HDEL', key, 'trying', 'by', 'account', 'young')
    end
end
