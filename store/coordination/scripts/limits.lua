-- The record of a scope says until when no call is made, and why. A scope is the reads or the writes of a provider, or
-- of one of its accounts. A scope without a record is free. The value is 'until reason since failures'; times are in
-- milliseconds:
--
--   until     no call is made before this time
--   reason    'named' or 'backoff': the provider throttles calls, and has named the time or not. 'open': calls fail, and
--             the circuit breaker is open. 'probe:JOB': this job tests whether they still fail
--   since     when the circuit breaker opened; 0 while it is closed
--   failures  of an account: calls that failed in a row

-- How long failures are kept after the last one, and the time of the last answer.
local REMEMBERED = 3600000

local function decode(value)
    local ends, reason, since, failures = string.match(value or '0 open 0 0', '^(%d+) (%S+) (%d+) (%d+)$')
    return {ends = tonumber(ends), reason = reason, since = tonumber(since), failures = tonumber(failures)}
end

local function store(key, record, now)
    local lifetime = math.ceil(record.ends - now)
    if record.since > 0 or record.failures > 0 then lifetime = math.max(lifetime, REMEMBERED) end
    if lifetime <= 0 then return redis.call('DEL', key) end
    local value = string.format('%.0f %s %.0f %.0f', record.ends, record.reason, record.since, record.failures)
    redis.call('SET', key, value, 'PX', lifetime)
end

-- A shorter pause does not replace a longer one.
local function pause(record, ends, reason)
    if ends > record.ends then record.ends, record.reason = ends, reason end
end

local function is_probed(record) return string.sub(record.reason, 1, 6) == 'probe:' end

-- Milliseconds for which a pause lasts that the provider has named.
local function named(record, now) return record.reason == 'named' and math.max(0, record.ends - now) or 0 end
