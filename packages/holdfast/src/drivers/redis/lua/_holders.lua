-- Locks that several may hold: read-write locks and semaphores. Each holder has a weight, and all together a limit.
--
-- Their tokens say so: "<attempt>:<client>:<share>:<ticket>", with the share r (reads), w (writes), s<permits>/<limit>.
-- K      sorted set: the holders' tokens by the expiry of each, in server ms
-- info   hash: used (the sum of weights), and for each holder h<attempt> ("<number> <weight> <token>"), w<attempt> (its words),
--        c<attempt> (claimed by a repeat)
-- fence  as a mutex's, with the kind and the limit that were granted last, and the token that an operator broke last

local now_ms = math.floor(now / 1000)
local all = 2147483648
local slack_ms = 1000
local kind, limit, used
local has_expired_ones -- more than are dropped in one call

-- Kind, weight, limit. Nothing of what is no share.
local function share_of(token)
  local mark, weight, of = string.match(token, '^%x+:%x+:(%a)(%d*)/?(%d*):%d+')
  if mark == 'r' then
    return 'read-write', 1, all
  elseif mark == 'w' then
    return 'read-write', all, all
  elseif mark == 's' then
    return 'semaphore', tonumber(weight), tonumber(of)
  end
end

local function attempt_of(token)
  return string.sub(token, 1, 32)
end

-- The token by which an attempt holds K, its number and its weight; nothing where it does not.
local function holding_of(token)
  local known = redis.call('HGET', info, 'h' .. attempt_of(token))
  if known then
    local number, weight, held_by = string.match(known, '^(%d+) (%d+) (.+)$')
    return held_by, tonumber(number), tonumber(weight)
  end
end

local function write_holder(token, number, weight)
  redis.call('HSET', info, 'used', used, 'h' .. attempt_of(token), digits(number) .. ' ' .. weight .. ' ' .. token)
end

local function remove(token)
  local _, _, weight = holding_of(token)
  local attempt = attempt_of(token)
  redis.call('ZREM', K, token)
  used = used - weight
  if used == 0 then
    redis.call('DEL', info)
  else
    redis.call('HDEL', info, 'h' .. attempt, 'w' .. attempt, 'c' .. attempt)
    redis.call('HSET', info, 'used', used)
  end
end

-- What was said of the holders is gone, as where keys are evicted, and they are not: their tokens say it again, but for the numbers.
local function restore()
  local _, newest = numbers()
  local tokens = redis.call('ZRANGE', K, 0, -1)
  used = 0
  for _, token in ipairs(tokens) do
    if not share_of(token) then
      error('KINDMISMATCH sorted set of others', 0)
    end
  end
  redis.call('DEL', info)
  for _, token in ipairs(tokens) do
    local own_kind, weight, own_limit = share_of(token)
    kind, limit = own_kind, limit or own_limit
    used = used + weight
    write_holder(token, newest or floor, weight)
  end
  redis.call('PEXPIRE', info, math.max(redis.call('PTTL', K), slack_ms))
end

-- The lock as it is now: holders whose time is over are gone.
local function look()
  local kept = redis.call('HMGET', fence, 'kind', 'limit')
  kind, limit, used = kept[1], tonumber(kept[2]), tonumber(redis.call('HGET', info, 'used'))
  if redis.call('ZCARD', K) == 0 then
    redis.call('DEL', info)
    used = 0
    local first = redis.call('ZRANGE', queue, 0, 0)[1]
    if first and not limit then
      local own_kind, _, own_limit = share_of(first)
      kind, limit = own_kind, own_limit
    end
  elseif not used or not limit then
    restore()
  end
  local expired = redis.call('ZRANGEBYSCORE', K, '-inf', now_ms, 'LIMIT', 0, 64)
  for _, token in ipairs(expired) do
    remove(token)
  end
  has_expired_ones = #expired == 64
end

-- Refuses who asks for something else than who holds or waits; and for another limit than the one that is remembered.
local function check(token)
  local own_kind, _, own_limit = share_of(token)
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  local present = first and (share_of(first) or 'mutex') or used > 0 and kind
  if present and present ~= own_kind then
    error('KINDMISMATCH ' .. present, 0)
  elseif kind == own_kind and limit ~= own_limit then
    error('LIMITMISMATCH ' .. limit, 0)
  end
  kind, limit = own_kind, own_limit
end

local function outlive(ttl)
  local longest = math.max(redis.call('PTTL', K), ttl + slack_ms)
  redis.call('PEXPIRE', K, longest)
  redis.call('PEXPIRE', info, longest)
  redis.call('PEXPIRE', fence, longest + retention_ms)
end

-- Writes a grant and answers its number.
local function admit(token, ttl)
  local _, weight = share_of(token)
  local newest = redis.call('HGET', fence, 'last')
  local number = math.max((tonumber(newest) or 0) + 1, floor)
  local text = digits(number)
  used = used + weight
  redis.call('HSET', fence, 'first', text, 'last', text, 'kind', kind, 'limit', limit)
  redis.call('ZADD', K, now_ms + ttl, token)
  write_holder(token, number, weight)
  outlive(ttl)
  return number
end

local function note(token, words)
  if words ~= '' then
    redis.call('HSET', info, 'w' .. attempt_of(token), words)
  end
end
