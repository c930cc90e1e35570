-- Renews the leases of flights.
--
-- KEYS     flights
-- ARGV[1]  milliseconds of the lease
-- Reply    none

for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end
