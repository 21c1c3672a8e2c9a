-- Locks that several may hold: read-write locks and semaphores. Each holder has a weight, and all together a limit.
--
-- Their tokens say so: "<random>:<client>:<share>:<ticket>", with the share r (reads), w (writes), s<permits>/<limit>, or
-- a<permits>/<limit>: who has waited in its process, behind leases of that limit, takes any limit that there is now.
-- K      sorted set: the holders' tokens by the expiry of each, in server ms
-- info   hash: used (the sum of weights), and for each holder h<token> ("<number> <weight> <count>"), w<token> (its words)
-- A quorum's node has used and h<token> in the fence, "<number> <weight> <expiry>", and remembers by them whom K has lost.
-- Beside the metadata of one server, in the fence of a quorum's node: the kind and the limit of who holds or waits, and the token that an
-- operator broke last.

local now_ms = math.floor(now / 1000)
local all = 2147483648
local slack_ms = 1000
local kind, limit, used, newest -- as in the fence and the info; `newest`: the last number
local has_expired_ones -- more than are dropped at once
local has_lone_terms -- on one server: kind and limit are kept though nobody holds K

-- What an operation has read and nothing has changed since; nil where that is not known.
local book -- the key that has kind, limit, `used` and what each holder has
local holdings -- by token: { first number, weight, of a quorum's node the expiry, else how many numbers }, false where it holds nothing
local earliest -- whose time is over first: { token, expiry }
local head -- who stands first in the queue: { member, score }

-- Kind, weight, limit, whether another limit will do. Nothing of what is no share.
local function share_of(token)
  local mark, weight, of = string.match(token, '^:(%a)(%d*)/?(%d*):%d+', 66)
  if mark == 'r' then
    return 'read-write', 1, all
  elseif mark == 'w' then
    return 'read-write', all, all
  elseif mark == 's' or mark == 'a' then
    return 'semaphore', tonumber(weight), tonumber(of), mark == 'a'
  end
end

local function keep_holding(token, known)
  local number, weight, more = string.match(known or '', '^(%d+) (%d+) ?(%d*)$')
  holdings[token] = number and { tonumber(number), tonumber(weight), tonumber(more) } or false
end

-- The first number and the weight with which a token holds K, and what `holdings` has else; nothing where it does not.
local function holding_of(token)
  if holdings[token] == nil then
    keep_holding(token, redis.call('HGET', book, 'h' .. token))
  end
  local found = holdings[token]
  if found then
    return found[1], found[2], found[3]
  end
end

-- The last number with which a token holds K.
local function last_of(token)
  local first, _, count = holding_of(token)
  return is_quorum and first or first + (count or 1) - 1
end

local function write_holder(token, number, weight, expiry, count)
  local more = is_quorum and expiry or count or 1
  local text = table.concat({ digits(number), weight, digits(more) }, ' ')
  redis.call('HSET', book, 'kind', kind, 'limit', limit, 'used', used, 'h' .. token, text)
  holdings[token] = { number, weight, more }
end

local function first_to_end()
  earliest = earliest or redis.call('ZRANGE', K, 0, 0, 'WITHSCORES')
  return earliest[1], earliest[2]
end

local function first_in_line()
  head = head or redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  return head[1], head[2]
end

-- Who comes behind the first leaves him there.
local function stand_in_line(token, member)
  note_ttl()
  enqueue(token, member)
  local score = head and tonumber(head[2])
  if not score or score >= tonumber(ticket_of(token)) then
    head = nil
  end
end

-- Nobody holds K. On one server its kind and limit are kept as long as somebody waits: `forget_terms` ends that.
local function forget_holders()
  redis.call('DEL', info)
  holdings, used = {}, 0
  if limit and first_in_line() and not is_quorum then
    redis.call('HSET', info, 'kind', kind, 'limit', limit)
    redis.call('PEXPIRE', info, 60000)
    has_lone_terms = true
  end
end

local function forget_terms()
  if has_lone_terms and used == 0 and not first_in_line() then
    redis.call('HDEL', info, 'kind', 'limit')
  end
end

local function remove(token)
  local _, weight = holding_of(token)
  redis.call('ZREM', K, token)
  used = used - weight
  if used == 0 then
    forget_holders()
  else
    redis.call('HDEL', info, 'h' .. token, 'w' .. token)
  end
  if is_quorum then
    redis.call('HDEL', fence, 'h' .. token)
  end
  if is_quorum or used > 0 then
    redis.call('HSET', book, 'used', used)
  end
  holdings[token] = false
  if earliest and earliest[1] == token then
    earliest = nil
  end
end

-- What was said of the holders is gone, as where keys are evicted, and they are not: their tokens say it again, but for the numbers.
local function restore()
  local held = redis.call('ZRANGE', K, 0, -1, 'WITHSCORES')
  used = 0
  for i = 1, #held, 2 do
    if not share_of(held[i]) then
      error('KINDMISMATCH sorted set of others', 0)
    end
  end
  redis.call('DEL', info)
  holdings = {}
  for i = 1, #held, 2 do
    local own_kind, weight, own_limit = share_of(held[i])
    kind, limit = own_kind, limit or own_limit
    used = used + weight
    write_holder(held[i], newest or floor, weight, tonumber(held[i + 1]))
  end
  redis.call('PEXPIRE', book, math.max(redis.call('PTTL', K), slack_ms) + (is_quorum and retention_ms or 0))
end

-- K is absent, and the fence of a quorum's node remembers holders: they have it again, those whose time is over to be dropped by it.
local function revive()
  local longest = now_ms
  local kept = redis.call('HGETALL', fence)
  for i = 1, #kept, 2 do
    local expiry = string.match(kept[i], '^h%x') and tonumber(string.match(kept[i + 1], ' (%d+)$'))
    if expiry then
      redis.call('ZADD', K, digits(expiry), string.sub(kept[i], 2))
      longest = math.max(longest, expiry)
    end
  end
  redis.call('PEXPIRE', K, digits(longest - now_ms + 2 * slack_ms))
  earliest = nil
end

-- The lock as it is now: holders whose time is over are gone. `token`: whose holding will be asked for, by this operation.
local function look(token, name)
  token = token or ''
  book = is_quorum and fence or info
  local kept = redis.call('HMGET', book, 'kind', 'limit', 'last', 'used', 'h' .. token)
  kind, limit, newest, used = kept[1], tonumber(kept[2]), tonumber(kept[3]), tonumber(kept[4])
  holdings, earliest, head = {}, nil, nil
  has_expired_ones, has_lone_terms = false, false
  local _, expiry = first_to_end()
  if is_quorum and not expiry and (used or 0) > 0 then
    revive()
    _, expiry = first_to_end()
  end
  if not expiry then
    local first = first_in_line()
    has_lone_terms = kind and not is_quorum
    if not first and not is_quorum then
      kind, limit = nil, nil
    end
    if used then
      forget_holders()
    end
    used = 0
    holdings[token] = false
    if first and not limit then
      local own_kind, _, own_limit = share_of(first)
      kind, limit = own_kind, own_limit
    end
    return
  elseif used and limit then
    keep_holding(token, kept[5])
  else
    restore()
  end
  if tonumber(expiry) <= now_ms then
    local expired = redis.call('ZRANGEBYSCORE', K, '-inf', now_ms, 'LIMIT', 0, 64)
    for _, over in ipairs(expired) do
      local _, weight, ended_at = holding_of(over)
      if is_quorum and not is_ended_by(name, token, over) then
        wait_for(ended_at, weight < limit and 'alone' or 'notBefore')
      end
      remove(over)
    end
    has_expired_ones = #expired == 64
  end
end

-- Refuses who asks for something else than who holds or waits; and for another limit than the one that is remembered.
local function check(token)
  local own_kind, weight, own_limit, takes_any = share_of(token)
  local first = first_in_line()
  local present = first and (share_of(first) or 'mutex') or used > 0 and kind
  if present and present ~= own_kind then
    error('KINDMISMATCH ' .. present, 0)
  elseif kind == own_kind and limit ~= own_limit and not (takes_any and weight <= limit) then
    error('LIMITMISMATCH ' .. limit, 0)
  end
  kind, limit = own_kind, kind == own_kind and limit or own_limit
end

-- K and what is said of its holders stay for a second or two longer than they need to: who comes within that second writes neither.
local function outlive(ttl)
  local longest = redis.call('PTTL', K)
  if longest < ttl + slack_ms then
    longest = ttl + 2 * slack_ms
    redis.call('PEXPIRE', K, longest)
    redis.call('PEXPIRE', info, longest)
  end
  if is_quorum then
    keep_terms(longest)
  end
end

-- Writes a grant, with the number that the lease has already or the next `want`. Answers its first number and its last; of a quorum's
-- node also in how many ms it counts.
local function admit(token, weight, ttl, want, known_number)
  local number, last = known_number, known_number
  if not number then
    number, last = next_numbers(want, newest)
  end
  local expiry = now_ms + ttl
  newest, used = math.max(newest or 0, last), used + weight
  redis.call('ZADD', K, expiry, token)
  if earliest and (not earliest[1] or expiry <= tonumber(earliest[2])) then
    earliest = nil
  end
  write_holder(token, number, weight, expiry, last - number + 1)
  outlive(ttl)
  return number, last, is_quorum and left_to_wait(weight < limit) or nil
end

local function note(token, words)
  if words ~= '' then
    redis.call('HSET', info, 'w' .. token, words)
    if is_quorum then
      redis.call('PEXPIRE', info, redis.call('PTTL', K)) -- nothing else is there
    end
  end
end
