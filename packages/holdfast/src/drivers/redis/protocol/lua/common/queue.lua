-- The queue, and the grants to who stands there: where it is not the usual case.

local popped -- a waiter that was taken from the queue and not served yet; { false }: one was, and is gone

-- The queue's TTL in ms as the operation began, where it may offer lock_key: read before the operation changes the queue.
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
  local ticket, other_ticket = tonumber(ticket_of(token)), tonumber(ticket_of(other))
  if ticket ~= other_ticket then
    return ticket < other_ticket
  end
  for i = 1, 32 do
    local byte, other_byte = string.byte(token, i), string.byte(other, i)
    if byte ~= other_byte then
      return byte < other_byte
    end
  end
  return false
end

-- A resend keeps its place. Returns 1 for a new member, 0 for one that stood there.
local function enqueue(token, queue_entry)
  local added = redis.call('ZADD', queue, 'NX', ticket_of(token), queue_entry)
  redis.call('PEXPIRE', queue, 60000)
  return added
end

-- Leaves the queue. Of a quorum's node a client that adopted a grant does not know what a place there says beside the token: it is
-- found by its ticket.
local function dequeue(token, queue_args)
  local ticket = queue_args == '' and is_quorum and ticket_of(token)
  if not ticket then
    redis.call('ZREM', queue, token .. ' ' .. queue_args)
    return
  end
  for _, queue_entry in ipairs(redis.call('ZRANGEBYSCORE', queue, ticket, ticket, 'LIMIT', 0, 16)) do
    if string.sub(queue_entry, 1, #token + 1) == token .. ' ' then
      redis.call('ZREM', queue, queue_entry)
    end
  end
end

-- Of a token or a queue member: whether it shares lock_key, which a mutex does not.
local function is_shared(text)
  return string.find(text, '^:%a', 66) ~= nil
end

-- Hands lock_key, which nobody holds or its holder gives up, to the first waiter that is alive.
-- Returns the new holder's token; `own`, taken from the queue and not yet granted, if that member is first; nil if nobody
-- waits (lock_key is not touched); false at the bound of dead waiters, with lock_key absent: the caller repeats.
local function grant_next(own)
  note_ttl()
  for _ = 1, 16 do
    local first = popped or redis.call('ZPOPMIN', queue)
    popped = nil
    local queue_entry = first[1]
    if queue_entry == nil or queue_entry == own then
      return queue_entry
    elseif queue_entry and is_shared(queue_entry) then
      put_back(with_ttl(first))
      redis.call('DEL', lock_key)
      error('KINDMISMATCH another kind', 0)
    end
    local granted_token = queue_entry and grant_waiter(with_ttl(first))
    if granted_token then
      return granted_token
    end
  end
  redis.call('DEL', lock_key)
  return false
end

-- lock_key is given up: to the next, or absent. Returns true where the caller has to repeat.
local function release_lock()
  if is_quorum then
    forget_vote()
  end
  local next_holder = grant_next()
  if next_holder == nil then
    redis.call('DEL', lock_key, info)
  end
  return next_holder == false
end

-- lock_key was found absent in passing: whoever waits is served. Returns true where the caller has to repeat.
local function grant_next_if_free()
  return not holder and redis.call('EXISTS', queue) == 1 and grant_next() == false
end
