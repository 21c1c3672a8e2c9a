-- What every operation of a call sees: the server's time, how long a fence outlives its lock, and how long a vote waits behind a
-- holder that was not released.

local retention_ms = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)
local wait_ms = tonumber(ARGV[3])
local is_quorum = true
local known_run_id

-- How a number is written: %d takes a fraction of the time, and is right only where the server's C has longs of 64 bits.
local whole = string.format('%d', 9007199254740992) == '9007199254740992' and '%d' or '%.0f'

local function digits(number)
  return string.format(whole, number)
end

-- Of a lock_key with this TTL: that of the fence beside it, and its end. As text: most grants of a call have one TTL, and to write a number
-- is dear.
local known_ttl, fence_ttl_text, ending
