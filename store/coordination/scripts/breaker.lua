-- Circuit breakers. Each is a JSON object; a closed breaker without failures is absent. Times are in milliseconds.
--
--   failures    of an account: calls that failed in a row
--   failing     of a provider: the accounts that failed since the last answer, as {account: true}
--   failed_at   of a provider: time of the last failure that it counted
--   since       when an open breaker opened
--   retry_at    when an open breaker lets a probe pass
--   probe, account, probe_until  of a probe: the name of its job, the key of its account's breaker, and the end of
--               its lease

local function decode_breaker(value) return value and cjson.decode(value) or {} end

-- Whether an account's call is the breaker's probe.
local function is_probe(breaker, account, now)
    return breaker.account == account and breaker.probe_until > now
end

local function end_probe(breaker) breaker.probe, breaker.account, breaker.probe_until = nil, nil, nil end

-- Milliseconds until the job may call; 0: now.
local function refused_for(breaker, job, now, probe_retry)
    if not breaker.retry_at then return 0 end
    local probing = breaker.probe and breaker.probe_until - now or 0
    if probing > 0 then return breaker.probe == job and 0 or math.min(probing, probe_retry) end
    return math.max(0, breaker.retry_at - now)
end
