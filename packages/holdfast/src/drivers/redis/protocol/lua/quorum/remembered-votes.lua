-- The remembered votes of a node, in its fence. The node needs them if lock_key vanishes before its expiry. A clock that is set and
-- corrected, an eviction or a deletion can remove lock_key. The times here are plain values, which expire nothing.
--
--   by         the holder of a mutex, "<token> <expiry in server ms>", until its release
--   notBefore  the server ms before which no vote counts; by then every lease without a release has ended, under any former clock
--   alone      as notBefore, for an exclusive vote after readers or permits
--   most       the greatest number of all grants, if a refill has set `last` to a lower number
--
-- The holders of a shared lock are remembered as `used` and h<token> (common/shared-holders.lua).

local function remember_vote(token, ttl)
  redis.call('HSET', fence, 'by', token .. ' ' .. digits(now_ms + ttl))
end

-- Forgets the vote of a holder that releases it.
local function forget_vote()
  redis.call('HDEL', fence, 'by')
end

-- The delay in ms after which a vote counts; nil: at once.
local function wait_remaining_ms(is_shared)
  local from = redis.call('HMGET', fence, 'notBefore', is_shared and 'notBefore' or 'alone')
  local delay_ms = math.max(tonumber(from[1]) or 0, tonumber(from[2]) or 0) - now_ms
  return delay_ms > 0 and delay_ms or nil
end

-- Delays new votes after a holder that expired without release, because its client may still rely on the lease by its own clock.
local function delay_votes(expired_at, field)
  local from = expired_at + wait_ms
  if from > (tonumber(redis.call('HGET', fence, field)) or 0) then
    redis.call('HSET', fence, field, digits(from))
  end
end

-- Whether an operation of a past holder ends the remembered vote of that holder: the operation releases the vote, or acquires it again.
local function is_ended_by(name, token, past_token)
  local releases = name == 'release' or name == 'yield'
  return token == past_token and (releases or name == 'acquire' and redis.call('EXISTS', queue) == 0)
end

-- lock_key is absent. Restores a remembered holder until its expiry, or delays new votes after that expiry. Returns whether the fence
-- remembers holders of a shared lock.
local function restore_vote(name, own)
  local stored = redis.call('HMGET', fence, 'by', 'used')
  local token, expiry = string.match(stored[1] or '', '^(%S+) (%d+)$')
  expiry = tonumber(expiry)
  if expiry and expiry > now_ms then
    permit_writes()
    redis.call('SET', lock_key, token, 'PX', digits(expiry - now_ms))
  elseif expiry then
    forget_vote()
    if not is_ended_by(name, own, token) then
      delay_votes(expiry, 'notBefore')
    end
  end
  return (tonumber(stored[2]) or 0) > 0
end
