-- What every operation of a call sees: the server's time, how long a fence outlives its lock, whether this node is one of a quorum.

local retention_ms = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local is_quorum = ARGV[3] == '1'
local known_run_id

-- How a number is written: %d takes a fraction of the time, and is right only where the server's C has longs of 64 bits.
local whole = string.format('%d', 9007199254740992) == '9007199254740992' and '%d' or '%.0f'

local function digits(number)
  return string.format(whole, number)
end

-- The TTL of the fence beside a K with this one, as text: most grants of a call have one TTL, and to write a number is dear.
local known_ttl, outlives
