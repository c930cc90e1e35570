-- Renews the leases of flights in progress. flight_claim.lua describes the values.
--
-- KEYS       the keys of the flights
-- ARGV[1]    milliseconds of the lease; 0 ends the flights
-- ARGV[n+1]  flight n: another one, or a completed one, under its key is left alone
-- Reply      none

for n, value in ipairs(redis.call('MGET', unpack(KEYS))) do
    local flight = value and cmsgpack.unpack(value)
    if flight and flight.id == ARGV[n + 1] and not flight.completed then
        redis.call('PEXPIRE', KEYS[n], ARGV[1])
    end
end
