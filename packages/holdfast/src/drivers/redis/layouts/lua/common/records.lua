-- The records of this library's grants, beside the lock key: `h:<token>` is the fencing number and the metadata, `f:<number>` the token.

local function fence_of(holder)
  local record = redis.call('HGET', records, 'h:' .. holder)
  return record and string.match(record, '^%d+')
end

-- @param was_free no grant was in force, so older records are those of crashed holders
local function record(fence, metadata, ttl, was_free)
  if was_free then
    redis.call('DEL', records)
  end
  redis.call('HSET', records, 'h:' .. token, fence .. ' ' .. metadata, 'f:' .. fence, token)
  keep(records, ttl + 1000)
end

local function forget(holder)
  local fence = fence_of(holder)
  redis.call('HDEL', records, 'h:' .. holder, fence and 'f:' .. fence or '')
  redis.call('HDEL', notes, 'b:' .. holder)
end

-- Whether the token's present grant is a later one than that with this number.
local function is_later(fence)
  local present = fence_of(token)
  return fence ~= '' and present and tonumber(present) > tonumber(fence)
end

-- Why the token has no grant in force.
local function loss()
  if redis.call('HEXISTS', notes, 'b:' .. token) == 1 then
    return 'broken'
  end
  return redis.call('EXISTS', lock_key) == 1 and 'stolen' or 'expired'
end
