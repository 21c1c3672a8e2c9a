-- The holders of a shared lock: a read-write lock or a semaphore. Each holder has a weight, and the sum of weights has a limit.
--
-- A token contains the mode of its request: "<random>:<client>:<mode>:<ticket>". The modes:
--   r                    reader
--   w                    writer
--   s<permits>/<limit>   semaphore
--   a<permits>/<limit>   semaphore, from a request that has waited in its process; it accepts any present limit
--
--   lock_key   sorted set: the token of each holder by its expiry, server ms
--   info       hash: used (the sum of weights), and for each holder h<token> ("<number> <weight> <count>") and w<token> (metadata)
--
-- A quorum's node has `used` and h<token> in the fence, as "<number> <weight> <expiry>". These fields restore lost holders of lock_key.
-- The settings are the kind, the limit, and the token that an operator broke last. They are in info on one server, and in the fence on a
-- quorum's node.

local now_ms = math.floor(now / 1000)
local whole_limit = 2147483648
local slack_ms = 1000
-- The settings, the sum of weights, and the last fencing number.
local kind, limit, used, newest
-- Whether more holders have expired than one operation removes.
local has_more_expired
-- Whether, on one server, the settings remain although the lock has no holder.
local has_settings_only

-- The cache of an operation. A value is nil if the operation has not read the value, or has changed it since.

-- The key of the hash with kind, limit, `used` and the fields of the holders.
local entries_key
-- By token: { first number, weight, expiry (on a quorum's node) or count of numbers }; false for a token that is no holder.
local holder_cache
-- The holder that expires first: { token, expiry }.
local earliest
-- The first waiter of the queue: { queue entry, score }.
local head

-- Returns kind, weight, limit, and whether the request accepts any limit. Returns nothing for a token without a mode.
local function mode_of(token)
  local mark, weight, of = string.match(token, '^:(%a)(%d*)/?(%d*):%d+', 66)
  if mark == 'r' then
    return 'read-write', 1, whole_limit
  elseif mark == 'w' then
    return 'read-write', whole_limit, whole_limit
  elseif mark == 's' or mark == 'a' then
    return 'semaphore', tonumber(weight), tonumber(of), mark == 'a'
  end
end

local function cache_holder(token, known)
  local number, weight, more = string.match(known or '', '^(%d+) (%d+) ?(%d*)$')
  holder_cache[token] = number and { tonumber(number), tonumber(weight), tonumber(more) } or false
end

-- Returns first number, weight, and expiry or count of a holder, as in `holder_cache`. Returns nothing if the token is no holder.
local function holder_entry(token)
  if holder_cache[token] == nil then
    cache_holder(token, redis.call('HGET', entries_key, 'h' .. token))
  end
  local found = holder_cache[token]
  if found then
    return found[1], found[2], found[3]
  end
end

-- The last fencing number of a holder.
local function last_of(token)
  local first, _, count = holder_entry(token)
  return is_quorum and first or first + (count or 1) - 1
end

local function write_holder(token, number, weight, expiry, count)
  local more = is_quorum and expiry or count or 1
  local text = table.concat({ digits(number), weight, digits(more) }, ' ')
  redis.call('HSET', entries_key, 'kind', kind, 'limit', limit, 'used', used, 'h' .. token, text)
  holder_cache[token] = { number, weight, more }
end

local function earliest_expiry()
  earliest = earliest or redis.call('ZRANGE', lock_key, 0, 0, 'WITHSCORES')
  return earliest[1], earliest[2]
end

local function first_waiter()
  head = head or redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  return head[1], head[2]
end

-- Adds a queue entry. The cached head is dropped only if the new entry sorts before that head.
local function enqueue_waiter(token, queue_entry)
  note_ttl()
  enqueue(token, queue_entry)
  local score = head and tonumber(head[2])
  if not score or score >= tonumber(ticket_of(token)) then
    head = nil
  end
end

-- Removes the fields of all holders after the last holder. On one server the settings remain while the queue has waiters, until
-- `clear_settings` removes them.
local function clear_holders()
  redis.call('DEL', info)
  holder_cache, used = {}, 0
  if limit and first_waiter() and not is_quorum then
    redis.call('HSET', info, 'kind', kind, 'limit', limit)
    redis.call('PEXPIRE', info, 60000)
    has_settings_only = true
  end
end

local function clear_settings()
  if has_settings_only and used == 0 and not first_waiter() then
    redis.call('HDEL', info, 'kind', 'limit')
  end
end

local function remove(token)
  local _, weight = holder_entry(token)
  redis.call('ZREM', lock_key, token)
  used = used - weight
  if used == 0 then
    clear_holders()
  else
    redis.call('HDEL', info, 'h' .. token, 'w' .. token)
  end
  if is_quorum then
    redis.call('HDEL', fence, 'h' .. token)
  end
  if is_quorum or used > 0 then
    redis.call('HSET', entries_key, 'used', used)
  end
  holder_cache[token] = false
  if earliest and earliest[1] == token then
    earliest = nil
  end
end

-- The hash of the holders is missing, for example evicted, but the set of holders is not. Rebuilds the hash from the tokens. Fencing
-- numbers cannot be rebuilt.
local function rebuild_index()
  local held = redis.call('ZRANGE', lock_key, 0, -1, 'WITHSCORES')
  used = 0
  for i = 1, #held, 2 do
    if not mode_of(held[i]) then
      error('KINDMISMATCH unknown sorted set', 0)
    end
  end
  redis.call('DEL', info)
  holder_cache = {}
  for i = 1, #held, 2 do
    local own_kind, weight, own_limit = mode_of(held[i])
    kind, limit = own_kind, limit or own_limit
    used = used + weight
    write_holder(held[i], newest or floor, weight, tonumber(held[i + 1]))
  end
  redis.call('PEXPIRE', entries_key, math.max(redis.call('PTTL', lock_key), slack_ms) + (is_quorum and retention_ms or 0))
end

-- lock_key is absent, and the fence of a quorum's node remembers its holders. Restores all of them, because `load_state` then removes
-- the expired ones.
local function restore_remembered()
  local longest = now_ms
  local stored = redis.call('HGETALL', fence)
  permit_writes()
  for i = 1, #stored, 2 do
    local expiry = string.match(stored[i], '^h%x') and tonumber(string.match(stored[i + 1], ' (%d+)$'))
    if expiry then
      redis.call('ZADD', lock_key, digits(expiry), string.sub(stored[i], 2))
      longest = math.max(longest, expiry)
    end
  end
  redis.call('PEXPIRE', lock_key, digits(longest - now_ms + 2 * slack_ms))
  earliest = nil
end

-- Loads the state of the lock, and removes expired holders.
--   token   the token of the operation, whose fields are read in the same command
--   name    the operation's name
local function load_state(token, name)
  token = token or ''
  entries_key = is_quorum and fence or info
  local stored = redis.call('HMGET', entries_key, 'kind', 'limit', 'last', 'used', 'h' .. token)
  kind, limit, newest, used = stored[1], tonumber(stored[2]), tonumber(stored[3]), tonumber(stored[4])
  holder_cache, earliest, head = {}, nil, nil
  has_more_expired, has_settings_only = false, false
  local _, expiry = earliest_expiry()
  if is_quorum and not expiry and (used or 0) > 0 then
    restore_remembered()
    _, expiry = earliest_expiry()
  end
  if not expiry then
    local first = first_waiter()
    has_settings_only = kind and not is_quorum
    if not first and not is_quorum then
      kind, limit = nil, nil
    end
    if used then
      clear_holders()
    end
    used = 0
    holder_cache[token] = false
    if first and not limit then
      local own_kind, _, own_limit = mode_of(first)
      kind, limit = own_kind, own_limit
    end
    return
  elseif used and limit then
    cache_holder(token, stored[5])
  else
    rebuild_index()
  end
  if tonumber(expiry) <= now_ms then
    local expired = redis.call('ZRANGEBYSCORE', lock_key, '-inf', now_ms, 'LIMIT', 0, 64)
    for _, expired_token in ipairs(expired) do
      local _, weight, expired_at = holder_entry(expired_token)
      remove(expired_token)
      if is_quorum and not is_ended_by(name, token, expired_token) then
        delay_votes(expired_at, weight < limit and 'alone' or 'notBefore')
      end
    end
    has_more_expired = #expired == 64
  end
end

-- Raises an error if the request's kind differs from the present holders or waiters, or if the request's limit differs from the stored
-- limit.
local function check(token)
  local own_kind, weight, own_limit, accepts_any = mode_of(token)
  local first = first_waiter()
  local present = first and (mode_of(first) or 'mutex') or used > 0 and kind
  if present and present ~= own_kind then
    error('KINDMISMATCH ' .. present, 0)
  elseif kind == own_kind and limit ~= own_limit and not (accepts_any and weight <= limit) then
    error('LIMITMISMATCH ' .. limit, 0)
  end
  kind, limit = own_kind, kind == own_kind and limit or own_limit
end

-- Extends lock_key and the fields of its holders by one or two seconds more than necessary. A later grant within that second need not
-- extend them.
--   is_written   whether the TTL of lock_key is written even if it stays
local function extend_key_ttl(ttl, is_written)
  local longest = redis.call('PTTL', lock_key)
  if longest < ttl + slack_ms then
    longest = ttl + 2 * slack_ms
    redis.call('PEXPIRE', lock_key, longest)
    redis.call('PEXPIRE', info, longest)
  elseif is_written then
    redis.call('PEXPIRE', lock_key, digits(longest))
  end
  if is_quorum then
    extend_settings(longest)
  end
end

-- Writes a grant, with the lease's known number or the next `fence_count` numbers. Returns the first and the last number. On a quorum's
-- node it also returns the delay in ms after which the vote counts, if there is one.
local function add_holder(token, weight, ttl, fence_count, known_number)
  local number, last = known_number, known_number
  if not number then
    number, last = next_shared_fence(fence_count, newest)
  end
  local expiry = now_ms + ttl
  newest, used = math.max(newest or 0, last), used + weight
  redis.call('ZADD', lock_key, expiry, token)
  if earliest and (not earliest[1] or expiry <= tonumber(earliest[2])) then
    earliest = nil
  end
  write_holder(token, number, weight, expiry, last - number + 1)
  extend_key_ttl(ttl)
  return number, last, is_quorum and wait_remaining_ms(weight < limit) or nil
end

local function write_metadata(token, metadata)
  if metadata ~= '' then
    redis.call('HSET', info, 'w' .. token, metadata)
    -- On a quorum's node info has no other field, so it may expire with lock_key.
    if is_quorum then
      redis.call('PEXPIRE', info, redis.call('PTTL', lock_key))
    end
  end
end
