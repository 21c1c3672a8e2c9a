-- What is kept of a lock of one server.
--
-- lock_key      of a mutex a string: "<token> <first number> <count>", and " i" behind it if info was written
-- info   hash: a mutex's metadata [field, value, ...] with the token that they belong to

local own_first, own_last, is_marked -- of the holder

-- lock_key may have a value of another program, of any size: what we write is shorter than 600 bytes.
local function read_holder()
  local value = redis.call('GETRANGE', lock_key, 0, 599)
  local token, first, count, mark = string.match(value, '^(%S+) (%d+) (%d+)( ?i?)$')
  if not token and (value ~= '' or redis.call('EXISTS', lock_key) == 1) then
    token = value .. ' ' -- no token of ours equals it
  end
  own_first, is_marked = tonumber(first), mark == ' i'
  own_last = own_first and own_first + count - 1
  return token
end

-- Numbers of the present grant: first, last; nil where nobody holds lock_key, or another program.
local function grant_numbers()
  if holder then
    return own_first, own_last
  end
end

-- The holder as an answer has it: the value of another program without the blank that `read_holder` adds.
local function holder_text(value)
  return (string.gsub(value or '', ' $', ''))
end

-- Where the kind, the limit and the last break of a lock that several may hold are kept.
local function settings_key()
  return info
end

-- They last as long as the metadata of the holders.
local function extend_settings(ttl)
  if redis.call('PTTL', info) < 0 then
    redis.call('PEXPIRE', info, ttl)
  end
end

-- The numbers of a shared grant: first, last.
local function next_shared_fence(fence_count)
  return next_fence(fence_count)
end

-- Says in lock_key that info is there, because a release removes info only then.
local function mark(token)
  if not is_marked then
    redis.call('SET', lock_key, table.concat({ token, digits(own_first), own_last - own_first + 1, 'i' }, ' '), 'KEEPTTL')
    is_marked = true
  end
end

local has_gt = redis.REDIS_VERSION_NUM ~= nil -- Redis 7

-- Raises lock_key's TTL, never shortens it: an older, slower request must not cut a newer promise. It writes also where it
-- raises nothing, because a replica refuses that.
-- Metadata last as long as lock_key.
local function raise_ttl(ttl)
  if has_gt then
    redis.call('PEXPIRE', lock_key, ttl, 'GT')
  else
    local left = redis.call('PTTL', lock_key)
    if left >= 0 then
      redis.call('PEXPIRE', lock_key, digits(math.max(left, ttl)))
    end
  end
  if is_marked then
    redis.call('PEXPIRE', info, math.max(redis.call('PTTL', lock_key), ttl))
  end
end
