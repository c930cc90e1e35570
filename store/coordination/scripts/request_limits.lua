-- Counts a request for several limits, or for none of them if one is reached.
--
-- Follows the text of two functions, which are scripts of the library ``limits``:
--   take(counters, {limit, seconds, amount})   counts a request; false if the limit is reached
--   look(counters, {seconds})                  the two counts and their times to live in milliseconds
--
-- KEYS     for each limit: the counter of the minute before, that of the current minute
-- ARGV[1]  seconds of the window
-- ARGV[2]  ... and so on: for each limit, the number of requests
-- Reply    the number of the limit that is reached, 0 if none; then for each limit what look returns

local function counters(number) return {KEYS[2 * number - 1], KEYS[2 * number]} end

local limits = #KEYS / 2
local refusing = 0
for number = 1, limits do
    if not take(counters(number), {ARGV[number + 1], ARGV[1], 1}) then
        refusing = number
        for counted = 1, number - 1 do redis.call('DECR', KEYS[2 * counted]) end
        break
    end
end
local reply = {refusing}
for number = 1, limits do reply[number + 1] = look(counters(number), {ARGV[1]}) end
return reply
