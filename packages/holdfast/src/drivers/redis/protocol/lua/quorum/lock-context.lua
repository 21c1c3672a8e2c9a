-- What is kept of a lock on a node of a quorum.
--
-- lock_key      of a mutex a string: the holder's token
-- fence  hash: first and last number of the newest grant, and what is remembered of votes (remembered-votes.lua); of a lock that several may hold its kind and limit, and the last break
-- info   hash: a mutex's metadata [field, value, ...] with the token that they belong to

-- The holder as an answer has it. lock_key may have a value of another program, of any size: a token is shorter than 600 bytes.
local function holder_text(value)
  return string.sub(value or '', 1, 600)
end

-- Numbers of the newest grant: first, last; nil where the counter has expired.
local function grant_numbers()
  local found = redis.call('HMGET', fence, 'first', 'last')
  return tonumber(found[1]), tonumber(found[2])
end

-- Raises lock_key's TTL, never shortens it: an older, slower request must not cut a newer promise. The counter outlives lock_key, and what an owner
-- said of itself lasts as long as lock_key.
-- Returns what it is then.
local function raise_ttl(ttl)
  local left = redis.call('PTTL', lock_key)
  if left >= 0 and left < tonumber(ttl) then
    redis.call('PEXPIRE', lock_key, ttl)
    redis.call('PEXPIRE', info, ttl)
    remember_vote(holder, ttl)
  end
  local lasts = math.max(left, ttl)
  redis.call('PEXPIRE', fence, lasts + retention_ms)
  return lasts
end

-- Where the kind, the limit and the last break of a lock that several may hold are kept.
local function settings_key()
  return fence
end

-- They last as long as the counter, which a shorter grant must not cut.
local function extend_settings(ttl)
  local lasts = ttl + retention_ms
  if redis.call('PTTL', fence) < lasts then
    redis.call('PEXPIRE', fence, lasts)
  end
end

-- The numbers of a shared grant behind the newest one, first and last: it has one, whatever was asked.
local function next_shared_fence(_, newest)
  local number = math.max((newest or 0) + 1, floor)
  redis.call('HSET', fence, 'first', digits(number), 'last', digits(number))
  return number, number
end

local function read_holder()
  return redis.call('GET', lock_key)
end
