-- The fencing number of a new grant, from the counter of the lock that Redisson's RFencedLock has. The counter has no expiry.
local function next_fence()
  return digits(redis.call('INCR', counter))
end
