-- What only a quorum's node is asked.

-- yield token queue_args number ttl fence_count metadata latest
--   Gives the vote with this number to whoever stands first, and stands in line again; the vote with another number stays.
--   A late one does nothing.
-- Answers as acquire
local function yield(token, queue_args, number, ttl, fence_count, metadata)
  if holder == token and grant_numbers() == tonumber(number) then
    forget_vote()
    return acquire_free(token, token .. ' ' .. queue_args, ttl, fence_count, '2', metadata)
  end
  return acquire(token, queue_args, ttl, fence_count, '2', metadata)
end

-- raiseFence token number fence_count
--   The nodes gave different numbers: raises that of our grant, as a block of `fence_count`; never lowers it.
-- Answers { 1, first, last } what it is now, or { 0 } the grant is not ours
local function raise_fence(token, number, fence_count)
  if holder ~= token then
    return { 0 }
  end
  local first, last = grant_numbers()
  number = tonumber(number)
  if not first or first < number then
    first, last = number, number + fence_count - 1
    redis.call('HSET', fence, 'first', digits(first), 'last', digits(last))
    redis.call('PEXPIRE', fence, redis.call('PTTL', lock_key) + retention_ms)
  end
  return { 1, first, last }
end

-- refill token queue_args ttl first last latest
--   A node without the grant has it again, with the lease's own numbers, unless another has or waits for the vote there. The counter
--   stays the greater of both.
--   latest  until when it may be done, server ms: the lease's time is over then
-- Answers as acquire, or { 0 }
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
  local lasts = math.max(redis.call('PTTL', lock_key), ttl)
  redis.call('HSET', fence, 'first', first, 'last', last, 'most', digits(most))
  remember_vote(token, lasts)
  redis.call('PEXPIRE', fence, lasts + retention_ms)
  redis.call('SET', lock_key, token, 'PX', digits(lasts))
  return { 1, first, last, token, wait_remaining_ms() }
end
