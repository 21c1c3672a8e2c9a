-- Locks that several may hold: read-write locks and semaphores. Each holder has a weight, and all together a limit.
--
-- Their tokens say so: "<random>:<client>:<share>:<ticket>", with the share r (reads), w (writes), s<permits>/<limit>, or
-- a<permits>/<limit>: who has waited in its process, behind leases of that limit, takes any limit that there is now.
-- lock_key      sorted set: the holders' tokens by the expiry of each, in server ms
-- info   hash: used (the sum of weights), and for each holder h<token> ("<number> <weight> <count>"), w<token> (its words)
-- A quorum's node has used and h<token> in the fence, "<number> <weight> <expiry>", and remembers by them whom lock_key has lost.
-- Beside the metadata of one server, in the fence of a quorum's node: the kind and the limit of who holds or waits, and the token that an
-- operator broke last.

local now_ms = math.floor(now / 1000)
local whole_limit = 2147483648
local slack_ms = 1000
local kind, limit, used, newest -- as in the fence and the info; `newest`: the last number
local has_expired_ones -- more than are dropped at once
local has_settings_only -- on one server: kind and limit are kept though nobody holds lock_key

-- What an operation has read and nothing has changed since; nil where that is not known.
local entries_key -- the key that has kind, limit, `used` and what each holder has
local holder_cache -- by token: { first number, weight, of a quorum's node the expiry, else how many numbers }, false where it holds nothing
local earliest -- whose time is over first: { token, expiry }
local head -- who stands first in the queue: { member, score }

-- Kind, weight, limit, whether another limit will do. Nothing of what is no share.
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

-- The first number and the weight with which a token holds lock_key, and what `holder_cache` has else; nothing where it does not.
local function holder_entry(token)
  if holder_cache[token] == nil then
    cache_holder(token, redis.call('HGET', entries_key, 'h' .. token))
  end
  local found = holder_cache[token]
  if found then
    return found[1], found[2], found[3]
  end
end

-- The last number with which a token holds lock_key.
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

-- Who comes behind the first leaves him there.
local function enqueue_waiter(token, queue_entry)
  note_ttl()
  enqueue(token, queue_entry)
  local score = head and tonumber(head[2])
  if not score or score >= tonumber(ticket_of(token)) then
    head = nil
  end
end

-- Nobody holds lock_key. On one server its kind and limit are kept as long as somebody waits: `clear_settings` ends that.
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

-- What was said of the holders is gone, as where keys are evicted, and they are not: their tokens say it again, but for the numbers.
local function rebuild_index()
  local held = redis.call('ZRANGE', lock_key, 0, -1, 'WITHSCORES')
  used = 0
  for i = 1, #held, 2 do
    if not mode_of(held[i]) then
      error('KINDMISMATCH sorted set of others', 0)
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

-- lock_key is absent, and the fence of a quorum's node remembers holders: they have it again, those whose time is over to be dropped by it.
local function restore_remembered()
  local longest = now_ms
  local kept = redis.call('HGETALL', fence)
  for i = 1, #kept, 2 do
    local expiry = string.match(kept[i], '^h%x') and tonumber(string.match(kept[i + 1], ' (%d+)$'))
    if expiry then
      redis.call('ZADD', lock_key, digits(expiry), string.sub(kept[i], 2))
      longest = math.max(longest, expiry)
    end
  end
  redis.call('PEXPIRE', lock_key, digits(longest - now_ms + 2 * slack_ms))
  earliest = nil
end

-- The lock as it is now: holders whose time is over are gone. `token`: whose holding will be asked for, by this operation.
local function load_state(token, name)
  token = token or ''
  entries_key = is_quorum and fence or info
  local kept = redis.call('HMGET', entries_key, 'kind', 'limit', 'last', 'used', 'h' .. token)
  kind, limit, newest, used = kept[1], tonumber(kept[2]), tonumber(kept[3]), tonumber(kept[4])
  holder_cache, earliest, head = {}, nil, nil
  has_expired_ones, has_settings_only = false, false
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
    cache_holder(token, kept[5])
  else
    rebuild_index()
  end
  if tonumber(expiry) <= now_ms then
    local expired = redis.call('ZRANGEBYSCORE', lock_key, '-inf', now_ms, 'LIMIT', 0, 64)
    for _, expired_token in ipairs(expired) do
      local _, weight, ended_at = holder_entry(expired_token)
      if is_quorum and not is_ended_by(name, token, expired_token) then
        delay_votes(ended_at, weight < limit and 'alone' or 'notBefore')
      end
      remove(expired_token)
    end
    has_expired_ones = #expired == 64
  end
end

-- Refuses who asks for something else than who holds or waits; and for another limit than the one that is remembered.
local function check(token)
  local own_kind, weight, own_limit, takes_any = mode_of(token)
  local first = first_waiter()
  local present = first and (mode_of(first) or 'mutex') or used > 0 and kind
  if present and present ~= own_kind then
    error('KINDMISMATCH ' .. present, 0)
  elseif kind == own_kind and limit ~= own_limit and not (takes_any and weight <= limit) then
    error('LIMITMISMATCH ' .. limit, 0)
  end
  kind, limit = own_kind, kind == own_kind and limit or own_limit
end

-- lock_key and what is said of its holders stay for a second or two longer than they need to: who comes within that second writes neither.
local function extend_key_ttl(ttl)
  local longest = redis.call('PTTL', lock_key)
  if longest < ttl + slack_ms then
    longest = ttl + 2 * slack_ms
    redis.call('PEXPIRE', lock_key, longest)
    redis.call('PEXPIRE', info, longest)
  end
  if is_quorum then
    extend_settings(longest)
  end
end

-- Writes a grant, with the number that the lease has already or the next `fence_count`. Answers its first number and its last; of a quorum's
-- node also in how many ms it counts.
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
    if is_quorum then
      redis.call('PEXPIRE', info, redis.call('PTTL', lock_key)) -- nothing else is there
    end
  end
end
