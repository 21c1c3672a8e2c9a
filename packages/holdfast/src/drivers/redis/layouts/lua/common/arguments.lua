local lock_key, queue, seen, notes, records, counter = unpack(KEYS)
local operation, own_channel, channel, other_channel, detail, token = unpack(ARGV)
-- Whether the server is known to be a primary.
local serves_reads = false
local time = redis.call('TIME')
local now_micros = time[1] * 1000000 + time[2]
local now = math.floor(now_micros / 1000)
-- The remaining TTL that is reported for a key without a TTL, ms.
local no_expiry = 86400000

-- A refused message only delays waiters. Without `pcall` it would fail the release, after its writes.
local function publish(to, text)
  redis.pcall('PUBLISH', to, text)
end

-- Lua's tostring rounds at 14 digits.
local function digits(number)
  return string.format('%.0f', number)
end

-- Raises the TTL of a key. A key without a TTL gets one. It always writes, so a replica refuses it. A server with full memory permits it,
-- and then refuses no command of the script.
local function keep(key, ttl)
  redis.call('PEXPIRE', key, digits(math.max(redis.call('PTTL', key), ttl)))
end

-- The remaining TTL of an existing key, ms, at least 1.
local function remaining_of(key)
  local ttl = redis.call('PTTL', key)
  return ttl == -1 and no_expiry or math.max(1, ttl)
end

-- 32 hex digits in the form of a UUID, and back.
local function to_uuid(id)
  return string.gsub(id, '^(%x%x%x%x%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x+)$', '%1-%2-%3-%4-%5')
end

local function from_uuid(text)
  local id = string.gsub(text, '%-', '')
  return #id == 32 and string.find(id, '^%x+$') and id or nil
end
