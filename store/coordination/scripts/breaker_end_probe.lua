-- Ends a job's probe without a result, so that another job may probe.
--
-- KEYS     breakers
-- ARGV[1]  name of the job
-- Reply    none

-- include coordination/scripts/breaker.lua

for n, value in ipairs(redis.call('MGET', unpack(KEYS))) do
    local breaker = decode_breaker(value)
    if breaker.probe == ARGV[1] then
        end_probe(breaker)
        redis.call('SET', KEYS[n], cjson.encode(breaker), 'KEEPTTL')
    end
end
