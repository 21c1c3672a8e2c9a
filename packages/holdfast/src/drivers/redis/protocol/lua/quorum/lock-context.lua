-- The stored data of a lock on a node of a quorum.
--
--   lock_key   of a mutex: a string, the holder's token
--   fence      hash: first and last number of the newest grant, and the remembered votes (remembered-votes.lua)
--              of a shared lock also: its settings (kind, limit, last break)
--   info       hash: a mutex's metadata and the token to which the metadata belong

-- The holder's token in a reply. The value may be another program's and of any size, so it is cut. A token has less than 600 bytes.
local function holder_text(value)
  return string.sub(value or '', 1, 600)
end

-- The first and the last number of the newest grant; nil if the fence has expired.
local function grant_numbers()
  local found = redis.call('HMGET', fence, 'first', 'last')
  return tonumber(found[1]), tonumber(found[2])
end

-- Raises the TTL of lock_key, and never lowers it, because a delayed older request must not shorten a newer validity. The fence outlives
-- lock_key, and the metadata expire with lock_key. Returns the resulting TTL. For its order, and for the write of a TTL that stays, see
-- `raise_ttl` of one server.
local function raise_ttl(ttl)
  local remaining_ms = redis.call('PTTL', lock_key)
  local ttl_ms = math.max(remaining_ms, ttl)
  redis.call('PEXPIRE', lock_key, digits(ttl_ms))
  if remaining_ms < ttl_ms then
    redis.call('PEXPIRE', info, ttl)
    remember_vote(holder, ttl)
  end
  redis.call('PEXPIRE', fence, ttl_ms + retention_ms)
  return ttl_ms
end

-- The key of the hash with the settings of a shared lock.
local function settings_key()
  return fence
end

-- Extends the fence, which holds the settings. A shorter grant must not lower the TTL of the fence.
local function extend_settings(ttl)
  local ttl_ms = ttl + retention_ms
  if redis.call('PTTL', fence) < ttl_ms then
    redis.call('PEXPIRE', fence, ttl_ms)
  end
end

-- The first and the last number of a new shared grant. A shared grant has one number, for any requested count.
local function next_shared_fence(_, newest)
  local number = math.max((newest or 0) + 1, floor)
  redis.call('HSET', fence, 'first', digits(number), 'last', digits(number))
  return number, number
end

local function read_holder()
  return redis.call('GET', lock_key)
end
