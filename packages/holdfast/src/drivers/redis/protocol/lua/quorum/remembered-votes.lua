-- What the fence of a quorum's node remembers of the votes that it gave, beside their numbers. lock_key may vanish before its time: the clock
-- is set and put right again, lock_key is evicted or deleted. The times here are written out, and end nothing by themselves.
--
--   by         the holder of a mutex, "<token> <end>", until it is released; the end of its time is in server ms
--   notBefore  no vote counts before: whoever was not released has no lease any more then, whatever the clock was before
--   alone      the same for a vote that is not shared, behind readers
--   most       the greatest number that was given, where a refill has put `last` below it
-- Of those who share lock_key also: used, h<token> (common/shared-holders.lua).

local function remember_vote(token, ttl)
  redis.call('HSET', fence, 'by', token .. ' ' .. digits(now_ms + ttl))
end

-- The holder gives it up.
local function forget_vote()
  redis.call('HDEL', fence, 'by')
end

-- In how many ms a vote counts; nil: now.
local function wait_remaining_ms(is_shared)
  local from = redis.call('HMGET', fence, 'notBefore', is_shared and 'notBefore' or 'alone')
  local left = math.max(tonumber(from[1]) or 0, tonumber(from[2]) or 0) - now_ms
  return left > 0 and left or nil
end

-- Whose time is over and who was not released may still believe in his lease, by another clock than ours.
local function delay_votes(ended_at, field)
  local from = ended_at + wait_ms
  if from > (tonumber(redis.call('HGET', fence, field)) or 0) then
    redis.call('HSET', fence, field, digits(from))
  end
end

-- Whether an operation that names the token of a past holder ends what is remembered of it: it gives the vote up, or has it again.
local function is_ended_by(name, token, past)
  local gives_up = name == 'release' or name == 'yield'
  return token == past and (gives_up or name == 'acquire' and redis.call('EXISTS', queue) == 0)
end

-- lock_key is absent. Its holder has it again until his time is over; behind that he is waited for. Answers whether others shared it.
local function restore_vote(name, own)
  local kept = redis.call('HMGET', fence, 'by', 'used')
  local token, ends = string.match(kept[1] or '', '^(%S+) (%d+)$')
  ends = tonumber(ends)
  if ends and ends > now_ms then
    redis.call('SET', lock_key, token, 'PX', digits(ends - now_ms))
  elseif ends then
    if not is_ended_by(name, own, token) then
      delay_votes(ends, 'notBefore')
    end
    forget_vote()
  end
  return (tonumber(kept[2]) or 0) > 0
end
