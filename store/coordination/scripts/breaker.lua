-- Circuit breakers, for scripts that decide whether a call may begin.
--
-- Hash of an open breaker: until (end of the pause), since (when it opened), and while it is probed: trying (end
-- of the probe's lease), by (name of the job), account (key of the account's breaker) and young (until when other
-- jobs wait for the probe). Times are in milliseconds. A breaker without 'until' is closed.

local function load_breaker(key)
    local kept = redis.call('HMGET', key, 'until', 'trying', 'by', 'young')
    return {
        key = key, due = tonumber(kept[1]), trying = tonumber(kept[2]) or 0, by = kept[3],
        young = tonumber(kept[4]) or 0
    }
end

-- Two numbers of milliseconds: until the job may call, and how long it may wait for another job's probe. The job
-- may call now when both are 0 or less. A probe that is no longer young refuses calls until its lease ends.
local function remaining(breaker, account, job, now, pause)
    if not breaker.due or (breaker.by == job and breaker.trying > now) then return 0, 0 end
    local rest = breaker.due - now
    if rest <= 0 and breaker.trying > now then
        if breaker.young > now then return 0, breaker.young - now end
        return breaker.trying - now, 0
    end
    if rest <= 0 and redis.call('SISMEMBER', breaker.key .. ':failing', account) == 1 then
        -- An account that has failed waits for one more pause before it may probe the provider.
        rest = breaker.due + pause - now
    end
    return rest, 0
end

-- Makes the job the probe of a breaker if it is open; returns whether it probes.
local function begin_probe(breaker, account, job, now, lease, young)
    if breaker.due then
        breaker.trying, breaker.by, breaker.young = now + lease, job, now + young
        redis.call('HSET', breaker.key, 'trying', breaker.trying, 'by', job, 'account', account,
            'young', breaker.young)
    end
    return breaker.due
end
