-- Arguments: the file of requests ("path<tab>zone" in each line), the API key, what every body must
-- contain, and where in the file to begin. Prints one line of JSON.
local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  expected, bad, at, prepared = args[3], 0, tonumber(args[4]), {}
  for line in io.lines(args[1]) do
    local path, zone = line:match("^(.-)\t(.*)$")
    local headers = { ["Authorization"] = "Bearer " .. args[2], ["X-Timezone"] = zone }
    table.insert(prepared, wrk.format("GET", path, headers))
  end
end

function request()
  at = at % #prepared + 1
  return prepared[at]
end

function response(status, _, body)
  if status ~= 200 or not body:find(expected, 1, true) then
    bad = bad + 1
  end
end

function done(summary)
  local wrong = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  for _, thread in ipairs(threads) do
    wrong = wrong + thread:get("bad")
  end
  local told = '{"requests": %d, "seconds": %f, "bad": %d}\n'
  io.write(string.format(told, summary.requests, summary.duration / 1e6, wrong))
end
