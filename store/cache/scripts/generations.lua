-- Looks up generations of connections; connections without one get a new one.
--
-- KEYS     generations
-- ARGV[1]  the new generation
-- ARGV[2]  seconds of its lifetime
-- Reply    the generation under each key

-- include cache/scripts/generation.lua

local found = {}
for n, key in ipairs(KEYS) do found[n] = connection_generation(key, ARGV[1], ARGV[2]) end
return found
