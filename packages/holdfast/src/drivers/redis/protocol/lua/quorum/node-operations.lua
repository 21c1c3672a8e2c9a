-- The operations on a mutex that exist only on a node of a quorum.

-- yield token queue_args number ttl fence_count metadata latest
--   Returns the vote with this number, grants it to the first waiter, and queues the request again. A vote with another number stays.
--   Reply   as of acquire
--   Effects none after `latest`
local function yield(token, queue_args, number, ttl, fence_count, metadata)
  if holder == token and grant_numbers() == tonumber(number) then
    forget_vote()
    return acquire_free(token, token .. ' ' .. queue_args, ttl, fence_count, '2', metadata)
  end
  return acquire(token, queue_args, ttl, fence_count, '2', metadata)
end

-- raiseFence token number fence_count
--   Raises the first number of the token's grant, and never lowers it, because the nodes gave different numbers. The grant keeps
--   `fence_count` numbers.
--   Reply   { 1, first, last } the resulting numbers, or { 0 } the token does not hold the lock
local function raise_fence(token, number, fence_count)
  if holder ~= token then
    return { 0 }
  end
  local first, last = grant_numbers()
  number = tonumber(number)
  if not first or first < number then
    first, last = number, number + fence_count - 1
    permit_writes()
    redis.call('HSET', fence, 'first', digits(first), 'last', digits(last))
    redis.call('PEXPIRE', fence, redis.call('PTTL', lock_key) + retention_ms)
  end
  return { 1, first, last }
end

-- refill token queue_args ttl first last latest
--   Writes a missing grant again, with the numbers of the lease, unless another token holds the vote or waits for it. The fencing
--   counter keeps the greater number.
--   latest   server time in ms after which the operation must have no effect, because the lease has expired by then
--   Reply   as of acquire, or { 0 } nothing was written
local function refill(token, queue_args, ttl, first, last, latest)
  if now_ms > tonumber(latest) or holder and holder ~= token then
    return { 0 }
  end
  dequeue(token, queue_args)
  if not holder and redis.call('EXISTS', queue) == 1 and grant_next() ~= nil then
    return { 0 }
  end
  local number = holder and grant_numbers()
  if number and number <= tonumber(first) then
    return repeat_grant(token, token .. ' ' .. queue_args, ttl, '')
  end
  local newest = redis.call('HMGET', fence, 'last', 'most')
  local most = math.max(tonumber(newest[1]) or 0, tonumber(newest[2]) or 0, tonumber(last))
  local ttl_ms = math.max(redis.call('PTTL', lock_key), ttl)
  redis.call('HSET', fence, 'first', first, 'last', last, 'most', digits(most))
  remember_vote(token, ttl_ms)
  redis.call('PEXPIRE', fence, ttl_ms + retention_ms)
  redis.call('SET', lock_key, token, 'PX', digits(ttl_ms))
  return { 1, first, last, token, wait_remaining_ms() }
end
