-- What every operation sees: the batch, the time, the keys of the lock in turn.

local retention_ms, queue_bound = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local K, queue, fence, info

-- The server's identity, asked for only where an answer or a message needs it.
local known_run_id
local function run_id()
  if not known_run_id then
    known_run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  end
  return known_run_id
end

local function digits(number)
  return string.format('%.0f', number)
end

-- Numbers of the newest grant: first, last; nil where the counter has expired.
local function numbers()
  local found = redis.call('HMGET', fence, 'first', 'last')
  return tonumber(found[1]), tonumber(found[2])
end

-- An owner's own words live beside K and count only for the token that they were written with.
-- words: JSON of [field, value, ...]; empty: there are none.
local function write_info(token, ttl, words)
  if words ~= '' then
    redis.call('DEL', info)
    redis.call('HSET', info, 'token', token, unpack(cjson.decode(words)))
    redis.call('PEXPIRE', info, ttl)
  end
end

-- Raises a TTL, never shortens it: an older, slower request must not cut a newer promise.
local function raise_ttl(ttl)
  local left = redis.call('PTTL', K)
  if left >= 0 and left < tonumber(ttl) then
    redis.call('PEXPIRE', K, ttl)
  end
end
