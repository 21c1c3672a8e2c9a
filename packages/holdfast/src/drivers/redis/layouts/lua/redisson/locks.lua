-- The layout of Redisson's RLock and RReadWriteLock, as of Redisson 3.22 to 4.7.
--
-- RLock: the lock key is a hash with one field `<uuid>:<number>` and the count of the holder's calls.
-- RReadWriteLock: the hash has a field `mode`, a field for each reader, and a field `<uuid>:<number>:write` for the writer. Each count of
-- a reader has a key `<timer prefix><field>:rwlock_timeout:<count>`, which expires with it. The hash expires with its last reader.
--
-- The field of this library has the token as its UUID, and the number 1. So each acquisition has its own field, and the count stays 1.

local channel_of_readers = other_channel
local timer_prefix = detail
local fair_queue, fair_deadlines = KEYS[7], KEYS[8]
-- The most readers that a release examines.
local max_readers = 10000
-- A renewal by Redisson sets the TTL of a hash with readers to its `lockWatchdogTimeout`, 30 s by default. A longer TTL would be cut.
local max_shared_ttl = 30000

local function field_of(holder)
  return to_uuid(holder) .. ':1'
end

local function token_in(field)
  local uuid = string.match(field, '^([%x%-]+):1$') or string.match(field, '^([%x%-]+):1:write$')
  return uuid and from_uuid(uuid) or ''
end

local function timer_of(field)
  return timer_prefix .. field .. ':rwlock_timeout:1'
end

local function lock_mode()
  return redis.call('HGET', lock_key, 'mode')
end

local function is_field(text)
  return string.find(text, '^%x+%-%x+%-%x+%-%x+%-%x+:%d+') ~= nil
end

-- The first fields of the hash. A hash of any size is read in parts.
local function some_fields()
  local found = redis.call('HSCAN', lock_key, 0, 'COUNT', 10)[2]
  local fields = {}
  for i = 1, #found, 2 do
    fields[#fields + 1] = found[i]
  end
  return fields
end

-- The kind of the lock: 'none', 'mutex', 'read-write', or 'unknown' for another content.
local function kind_of_lock()
  local kind = redis.call('TYPE', lock_key).ok
  if kind == 'none' then
    return 'none'
  elseif kind ~= 'hash' then
    return 'unknown'
  end
  local mode = lock_mode()
  if mode then
    return (mode == 'read' or mode == 'write') and 'read-write' or 'unknown'
  end
  for _, field in ipairs(some_fields()) do
    if is_field(field) then
      return 'mutex'
    end
  end
  return 'unknown'
end

local function other_kind(mode)
  local present = kind_of_lock()
  local wanted = mode == '' and 'mutex' or 'read-write'
  if present == 'unknown' then
    return 'KINDMISMATCH no lock of Redisson'
  elseif mode and present ~= 'none' and present ~= wanted then
    return 'KINDMISMATCH ' .. present
  end
end

local function is_free(mode)
  return redis.call('EXISTS', lock_key) == 0 or mode == 'r' and lock_mode() == 'read'
end

local function own_ttl(holder)
  if redis.call('TYPE', lock_key).ok ~= 'hash' then
    return nil
  end
  local field = field_of(holder)
  if redis.call('HEXISTS', lock_key, field .. ':write') == 1 then
    return remaining_of(lock_key)
  elseif redis.call('HEXISTS', lock_key, field) == 0 then
    return nil
  elseif not lock_mode() then
    return remaining_of(lock_key)
  end
  local timer = timer_of(field)
  return redis.call('EXISTS', timer) == 1 and remaining_of(timer) or nil
end


-- Returns the TTL of the longest reader in ms, -1 for a reader without expiry, or nil without readers. The counts of other clients may be above 1.
local function longest_reader()
  local longest
  for _, field in ipairs(redis.call('HKEYS', lock_key)) do
    local count = tonumber(redis.call('HGET', lock_key, field))
    for i = 1, math.min(count or 0, 100) do
      local ttl = redis.call('PTTL', timer_prefix .. field .. ':rwlock_timeout:' .. i)
      if ttl == -1 then
        return -1
      elseif ttl > 0 then
        longest = math.max(longest or 0, ttl)
      end
    end
  end
  return longest
end

-- Raises the TTL of the hash, which is that of the longest holder. With a reader without expiry, the hash stays without.
local function keep_lock(ttl)
  local is_endless = redis.call('PTTL', lock_key) == -1
  local longest = is_endless and lock_mode() == 'read' and longest_reader()
  if longest ~= -1 then
    keep(lock_key, math.max(ttl, longest or 0))
  end
end

local function hold(mode, ttl)
  local field = field_of(token)
  local exists = redis.call('EXISTS', lock_key) == 1
  if mode == '' then
    redis.call('HSET', lock_key, field, 1)
  elseif mode == 'w' then
    redis.call('HSET', lock_key, 'mode', 'write', field .. ':write', 1)
  else
    redis.call('HSET', lock_key, 'mode', 'read', field, 1)
    redis.call('SET', timer_of(field), 1, 'PX', ttl)
  end
  if exists then
    keep_lock(ttl)
  else
    redis.call('PEXPIRE', lock_key, ttl)
  end
end

local function prolong(ttl)
  if lock_mode() then
    ttl = math.min(ttl, max_shared_ttl)
  end
  local timer = timer_of(field_of(token))
  if redis.call('EXISTS', timer) == 1 then
    keep(timer, ttl)
  end
  keep_lock(ttl)
end

-- Wakes the first waiter of a fair lock that is not dead, on its own channel. Its queue is only read.
local function wake_fair_waiter()
  local waiting = redis.pcall('LRANGE', fair_queue, 0, 99)
  if waiting.err then
    return
  end
  for _, field in ipairs(waiting) do
    local deadline = redis.pcall('ZSCORE', fair_deadlines, field)
    if type(deadline) == 'string' and tonumber(deadline) > now then
      publish(channel .. ':' .. field, '0')
      return
    end
  end
end

local function end_mutex()
  redis.call('DEL', lock_key)
  publish(channel, '0')
  wake_fair_waiter()
end

local function end_writer(field)
  redis.call('HDEL', lock_key, field .. ':write')
  if redis.call('HLEN', lock_key) == 1 then
    redis.call('DEL', lock_key)
  else
    redis.call('HSET', lock_key, 'mode', 'read')
  end
  publish(channel_of_readers, '1')
end

local function end_reader(field)
  redis.call('DEL', timer_of(field))
  redis.call('HDEL', lock_key, field)
  local fields = redis.call('HLEN', lock_key)
  if fields > max_readers then
    return
  end
  local longest = fields > 1 and longest_reader()
  if longest then
    if longest > 0 and redis.call('PTTL', lock_key) ~= -1 then
      redis.call('PEXPIRE', lock_key, longest)
    end
  elseif fields == 1 or lock_mode() == 'read' then
    redis.call('DEL', lock_key)
    publish(channel_of_readers, '0')
  end
end

local function end_grant(holder)
  if redis.call('TYPE', lock_key).ok ~= 'hash' then
    return
  end
  local field = field_of(holder)
  if redis.call('HEXISTS', lock_key, field .. ':write') == 1 then
    end_writer(field)
  elseif redis.call('HEXISTS', lock_key, field) == 1 then
    if lock_mode() then
      end_reader(field)
    else
      end_mutex()
    end
  end
end

-- Redisson wakes no reader after a downgrade. This library does.
local function downgrade()
  local field = field_of(token)
  if redis.call('TYPE', lock_key).ok ~= 'hash' or redis.call('HEXISTS', lock_key, field .. ':write') == 0 then
    return own_ttl(token) and 1 or 0
  end
  redis.call('HDEL', lock_key, field .. ':write')
  redis.call('HSET', lock_key, 'mode', 'read', field, 1)
  redis.call('SET', timer_of(field), 1, 'PX', math.min(remaining_of(lock_key), max_shared_ttl))
  publish(channel_of_readers, '1')
  return 1
end

local function holders(max)
  local found = {}
  if redis.call('TYPE', lock_key).ok ~= 'hash' then
    return found
  end
  local mode = lock_mode()
  local cursor = '0'
  repeat
    local page = redis.call('HSCAN', lock_key, cursor, 'COUNT', 100)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local field = page[2][i]
      if is_field(field) and #found < max then
        local is_writer = string.find(field, ':write$') ~= nil
        local ttl = redis.call('PTTL', mode and not is_writer and timer_of(field) or lock_key)
        if ttl ~= -2 then
          local mode_of_holder = mode and (is_writer and 'write' or 'read') or ''
          found[#found + 1] = { field, ttl, mode_of_holder, token_in(field) }
        end
      end
    end
  until cursor == '0' or #found >= max
  return found
end
