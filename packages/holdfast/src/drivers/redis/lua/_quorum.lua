-- What only a quorum's node is asked.

-- yield token terms number ttl want words
--   Gives the vote with this number to whoever stands first, and stands in line again; the vote with another number stays.
-- Answers as acquire
local function yield(token, terms, number, ttl, want, words)
  if holder == token and numbers() == tonumber(number) then
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
