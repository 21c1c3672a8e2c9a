-- The queue, and the grants to who stands there: where it is not the usual case.

local popped -- a waiter that was taken from the queue and not served yet; { false }: one was, and is gone

-- The queue's TTL in ms as the operation began, where it may offer K: read before the operation changes the queue.
local lasts

local function note_ttl()
  lasts = lasts or redis.call('PTTL', queue)
end

-- { member, score } as `put_back` takes it.
local function with_ttl(waiter)
  waiter[3] = lasts >= 0 and lasts or nil
  return waiter
end

-- Of two waiters the one whose member stands first in the queue. Not by Lua's own comparison, which follows the locale.
local function precedes(token, other)
  local ticket, others = tonumber(ticket_of(token)), tonumber(ticket_of(other))
  if ticket ~= others then
    return ticket < others
  end
  for i = 1, 32 do
    local byte, others_byte = string.byte(token, i), string.byte(other, i)
    if byte ~= others_byte then
      return byte < others_byte
    end
  end
  return false
end

-- A resend keeps its place. Returns 1 for a new member, 0 for one that stood there.
local function enqueue(token, member)
  local added = redis.call('ZADD', queue, 'NX', ticket_of(token), member)
  redis.call('PEXPIRE', queue, 60000)
  return added
end

-- Leaves the queue. Of a quorum's node a client that adopted a grant does not know what a place there says beside the token: it is
-- found by its ticket.
local function leave(token, terms)
  local ticket = terms == '' and is_quorum and ticket_of(token)
  if not ticket then
    redis.call('ZREM', queue, token .. ' ' .. terms)
    return
  end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', queue, ticket, ticket, 'LIMIT', 0, 16)) do
    if string.sub(member, 1, #token + 1) == token .. ' ' then
      redis.call('ZREM', queue, member)
    end
  end
end

-- Of a token or a queue member: whether it shares K, which a mutex does not.
local function is_share(text)
  return string.find(text, '^:%a', 66) ~= nil
end

-- Hands K, which nobody holds or its holder gives up, to the first waiter that is alive.
-- Returns the new holder's token; `own`, taken from the queue and not yet granted, if that member is first; nil if nobody
-- waits (K is not touched); false at the bound of dead waiters, with K absent: the caller repeats.
local function grant_next(own)
  note_ttl()
  for _ = 1, 16 do
    local first = popped or redis.call('ZPOPMIN', queue)
    popped = nil
    local member = first[1]
    if member == nil or member == own then
      return member
    elseif member and is_share(member) then
      put_back(with_ttl(first))
      redis.call('DEL', K)
      error('KINDMISMATCH another kind', 0)
    end
    local taken = member and offer(with_ttl(first))
    if taken then
      return taken
    end
  end
  redis.call('DEL', K)
  return false
end

-- K is given up: to the next, or absent. Returns true where the caller has to repeat.
local function let_go()
  if is_quorum then
    forget()
  end
  local next_holder = grant_next()
  if next_holder == nil then
    redis.call('DEL', K, info)
  end
  return next_holder == false
end

-- K was found absent in passing: whoever waits is served. Returns true where the caller has to repeat.
local function serve_next()
  return not holder and redis.call('EXISTS', queue) == 1 and grant_next() == false
end
