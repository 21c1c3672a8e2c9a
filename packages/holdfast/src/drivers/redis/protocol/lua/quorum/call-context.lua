-- Values for all operations of a call. `retention_ms` is how long a fence outlives its lock. `wait_ms` is the delay of votes after a holder
-- that expired without release.

local retention_ms = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)
local wait_ms = tonumber(ARGV[3])
local is_quorum = true
local known_run_id

-- The format for whole numbers. %d is much faster than %.0f, and is correct only if a C long of the server has 64 bits.
local whole = string.format('%d', 9007199254740992) == '9007199254740992' and '%d' or '%.0f'

local function digits(number)
  return string.format(whole, number)
end

-- For grants with the TTL `known_ttl`: the fence's TTL and the grant's expiry, as text. Most grants of a call have the same TTL, and the
-- formatting of numbers is expensive.
local known_ttl, fence_ttl_text, expiry_text
