-- Redis's clock, which all machines share.

-- The current time in milliseconds since 1970, with a fraction.
local function clock()
    local time = redis.call('TIME')
    return time[1] * 1000 + time[2] / 1000
end
