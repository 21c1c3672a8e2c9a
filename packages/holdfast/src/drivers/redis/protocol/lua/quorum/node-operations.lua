-- What only a quorum's node is asked.

-- yield token terms number ttl want words latest
--   Gives the vote with this number to whoever stands first, and stands in line again; the vote with another number stays.
--   A late one does nothing.
-- Answers as acquire
local function yield(token, terms, number, ttl, want, words)
  if holder == token and numbers() == tonumber(number) then
    forget()
    return take_turn(token, token .. ' ' .. terms, ttl, want, '2', words)
  end
  return acquire(token, terms, ttl, want, '2', words)
end

-- agree token number want
--   The nodes gave different numbers: raises that of our grant, as a block of `want`; never lowers it.
-- Answers { 1, first, last } what it is now, or { 0 } the grant is not ours
local function agree(token, number, want)
  if holder ~= token then
    return { 0 }
  end
  local first, last = numbers()
  number = tonumber(number)
  if not first or first < number then
    first, last = number, number + want - 1
    redis.call('HSET', fence, 'first', digits(first), 'last', digits(last))
    redis.call('PEXPIRE', fence, redis.call('PTTL', K) + retention_ms)
  end
  return { 1, first, last }
end

-- refill token terms ttl first last latest
--   A node without the grant has it again, with the lease's own numbers, unless another has or waits for the vote there. The counter
--   stays the greater of both.
--   latest  until when it may be done, server ms: the lease's time is over then
-- Answers as acquire, or { 0 }
local function refill(token, terms, ttl, first, last, latest)
  if now_ms > tonumber(latest) or holder and holder ~= token then
    return { 0 }
  end
  leave(token, terms)
  if not holder and redis.call('EXISTS', queue) == 1 and grant_next() ~= nil then
    return { 0 }
  end
  local number = holder and numbers()
  if number and number <= tonumber(first) then
    return granted_again(token, token .. ' ' .. terms, ttl, '')
  end
  local newest = redis.call('HMGET', fence, 'last', 'most')
  local most = math.max(tonumber(newest[1]) or 0, tonumber(newest[2]) or 0, tonumber(last))
  local lasts = math.max(redis.call('PTTL', K), ttl)
  redis.call('HSET', fence, 'first', first, 'last', last, 'most', digits(most))
  remember(token, lasts)
  redis.call('PEXPIRE', fence, lasts + retention_ms)
  redis.call('SET', K, token, 'PX', digits(lasts))
  return { 1, first, last, token, left_to_wait() }
end
