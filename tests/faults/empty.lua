-- Empties Redis, atomically.
--
-- Keys      none
-- Arguments none
-- Reply     the number of cached busy periods before, and the number of keys after
local cached = #redis.call('KEYS', 'busy:*')
redis.call('FLUSHALL')
return {cached, redis.call('DBSIZE')}
