-- The queue of a lock, and the grants to its waiters. The fast paths of the execute scripts do not use this file.

-- A waiter that a fast path removed from the queue, without a grant yet. { false } if that waiter could not be granted the lock.
local removed_waiter

-- The queue's TTL in ms at the start of the operation. It is read before the operation changes the queue.
local queue_ttl

local function note_ttl()
  queue_ttl = queue_ttl or redis.call('PTTL', queue)
end

-- Adds the queue's TTL to { queue entry, score }, as `put_back` needs it.
local function with_ttl(waiter)
  waiter[3] = queue_ttl >= 0 and queue_ttl or nil
  return waiter
end

-- Whether the waiter of `token` is before the waiter of `other` in the queue. Lua's own comparison is not used, because it depends on
-- the locale.
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

-- Adds a queue entry. A repeated request keeps its position. Returns 1 for a new entry, 0 for a present one.
local function enqueue(token, queue_entry)
  local added = redis.pcall('ZADD', queue, 'NX', ticket_of(token), queue_entry)
  if type(added) == 'table' then
    -- A server with full memory refuses ZADD also for a present entry, which needs no memory.
    added = redis.call('ZSCORE', queue, queue_entry) and 0 or error(added.err, 0)
  end
  redis.call('PEXPIRE', queue, 60000)
  return added
end

-- Removes the queue entry of a token. On a quorum's node, a client that adopted a grant does not know the rest of the entry. Then the
-- entry is found by the token's ticket.
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

-- Whether a token or queue entry belongs to a shared lock rather than a mutex.
local function is_shared(text)
  return string.find(text, '^:%a', 66) ~= nil
end

-- Grants lock_key, which is free or being released, to the first waiter that is alive.
-- Returns the new holder's token. Returns `own` if that queue entry is first: then the entry is removed, and not yet granted.
-- Returns nil if no live request waits: lock_key is unchanged, or absent after a dead waiter.
-- Returns false after the maximum of dead waiters, with lock_key absent. Then the caller must repeat the operation.
local function grant_next(own)
  note_ttl()
  for _ = 1, 16 do
    local first = removed_waiter or redis.call('ZPOPMIN', queue)
    removed_waiter = nil
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

-- Releases lock_key and grants it to the next waiter, if there is one. Returns true if the caller must repeat the operation.
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

-- Grants a free lock_key to the next waiter, if there is one. Returns true if the caller must repeat the operation.
local function grant_next_if_free()
  return not holder and redis.call('EXISTS', queue) == 1 and grant_next() == false
end
