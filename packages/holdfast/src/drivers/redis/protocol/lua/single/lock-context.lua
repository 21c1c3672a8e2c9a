-- The stored data of a lock on one server.
--
--   lock_key   of a mutex: a string, "<token> <first number> <count>", followed by " i" if info has metadata
--   info       hash: a mutex's metadata and the token to which the metadata belong
--              of a shared lock also: its settings (kind, limit, last break)

-- The holder's first and last fencing number, and whether info has metadata.
local own_first, own_last, is_marked

-- Returns the holder's token. The value may be another program's and of any size, so it is cut. Values of this library have less than
-- 600 bytes. For another program's value it returns the value and a blank, which no token equals.
local function read_holder()
  local value = redis.call('GETRANGE', lock_key, 0, 599)
  local token, first, count, mark = string.match(value, '^(%S+) (%d+) (%d+)( ?i?)$')
  if not token and (value ~= '' or redis.call('EXISTS', lock_key) == 1) then
    token = value .. ' '
  end
  own_first, is_marked = tonumber(first), mark == ' i'
  own_last = own_first and own_first + count - 1
  return token
end

-- The first and the last number of the present grant; nil if lock_key is free or has another program's value.
local function grant_numbers()
  if holder then
    return own_first, own_last
  end
end

-- The holder's token in a reply, or another program's value without the blank that `read_holder` adds.
local function holder_text(value)
  return (string.gsub(value or '', ' $', ''))
end

-- The key of the hash with the settings of a shared lock.
local function settings_key()
  return info
end

-- Gives info, which holds the settings, a TTL if it has none.
local function extend_settings(ttl)
  if redis.call('PTTL', info) < 0 then
    redis.call('PEXPIRE', info, ttl)
  end
end

-- The first and the last number of a new shared grant.
local function next_shared_fence(fence_count)
  return next_fence(fence_count)
end

-- Records in lock_key that info has metadata, because only then a release deletes info.
local function mark(token)
  if not is_marked then
    redis.call('SET', lock_key, table.concat({ token, digits(own_first), own_last - own_first + 1, 'i' }, ' '), 'KEEPTTL')
    is_marked = true
  end
end

-- Raises the TTL of lock_key, and never lowers it, because a delayed older request must not shorten a newer validity. Returns the resulting
-- TTL. The metadata expire with lock_key.
--
-- It always writes, even if the TTL stays. A replica rejects the write, and so shows that it is a replica. WAIT waits for the last write of
-- its connection, so without a write it returns the acknowledgements of an earlier one (since Redis 7.2). A script calls it before its other
-- writes: a server with full memory refuses most commands, but not PEXPIRE, and no command of a script that has written.
local function raise_ttl(ttl)
  local ttl_ms = math.max(redis.call('PTTL', lock_key), ttl)
  redis.call('PEXPIRE', lock_key, digits(ttl_ms))
  if is_marked then
    redis.call('PEXPIRE', info, digits(ttl_ms))
  end
  return ttl_ms
end
