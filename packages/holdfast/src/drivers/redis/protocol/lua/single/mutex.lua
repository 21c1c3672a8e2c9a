-- The operations on a mutex of one server.

local mutex = {}

local function grant(token, ttl, fence_count, metadata)
  -- The metadata are written before lock_key, so nothing is granted if they cannot be written.
  write_info(token, ttl, metadata)
  local first, last = write_grant(token, ttl, fence_count, metadata ~= '')
  return first == last and first or { 1, first, last, token }
end

-- A repeated request gets the same grant with the same numbers.
local function repeat_grant(token, queue_entry, ttl, metadata)
  redis.call('ZREM', queue, queue_entry)
  local ttl_ms = raise_ttl(ttl)
  if metadata ~= '' and redis.call('HGET', info, 'token') ~= token then
    mark(token)
    write_info(token, ttl_ms, metadata)
  end
  return { 1, own_first, own_last, token }
end

-- The reply to a request without a grant. The first reply to a waiter far from the head omits the TTL, because most waiters never repeat
-- their request.
local function held_reply(holder_token, queue_entry, wait, is_repeat)
  local position = queue_entry and redis.call('ZRANK', queue, queue_entry) or -1
  local remaining_ms = (position < 3 or is_repeat) and redis.call('PTTL', lock_key) or -3
  return { 0, remaining_ms, position, holder_text(holder_token), (wait == '1' or wait == '3') and run_id() or '' }
end

-- Acquires lock_key, which is absent.
local function acquire_free(token, queue_entry, ttl, fence_count, wait, metadata)
  if redis.call('EXISTS', queue) == 0 then
    return grant(token, ttl, fence_count, metadata)
  elseif wait ~= '0' then
    note_ttl()
    enqueue(token, queue_entry)
  end
  local next_holder = grant_next(queue_entry)
  if next_holder == false then
    return { 3 }
  elseif next_holder == nil or next_holder == queue_entry then
    return grant(token, ttl, fence_count, metadata)
  end
  return held_reply(next_holder, wait ~= '0' and queue_entry, wait)
end

-- acquire token queue_args ttl fence_count wait metadata latest
--   token         "<random>:<client>:<ticket>"; the ticket decides the position in the queue
--   queue_args    the part of the queue entry after the token
--   ttl           TTL in ms of a grant by reply; a grant by notification has the TTL of the queue entry
--   fence_count   how many fencing numbers the grant gets at most
--   wait          0: only try
--                 1: queue the request if it is not granted
--                 2: as 1, without the run id in the reply
--                 3, 4: as 1 and 2, without the limit of the queue, because the caller releases a grant in the same call
--   metadata      owner, reason and labels as JSON of [field, value, ...]; empty: none
--   latest        server time in ms after which the operation must have no effect
--   Reply   { 1, first, last, token } granted, or the first number alone if the grant has one number
--           { 0, remaining TTL in ms (-1 none, -3 not read), position from 0 (-1 not queued), holder's token, run id or "" } held
--           { 2 } the queue is full
--           { 3 } dead waiters remain: repeat
--           { 4 } the operation came after `latest`
--   Effects a grant, or a queue entry
function mutex.acquire(token, queue_args, ttl, fence_count, wait, metadata)
  local queue_entry = token .. ' ' .. queue_args
  if not holder then
    return acquire_free(token, queue_entry, ttl, fence_count, wait, metadata)
  elseif holder == token then
    return repeat_grant(token, queue_entry, ttl, metadata)
  elseif wait == '0' then
    return held_reply(holder, nil, wait)
  end
  local is_new = enqueue(token, queue_entry) == 1
  local answer = held_reply(holder, queue_entry, wait, not is_new)
  if is_new and tonumber(wait) < 3 and answer[3] >= queue_bound then
    redis.call('ZREM', queue, queue_entry)
    return { 2 }
  end
  return answer
end

-- release token queue_args is_own
--   Ends the token's grant, or removes its queue entry.
--   is_own   1 if the caller's client made the token; then a next holder of that client gets its grant by this reply
--   Reply   1 released, without a next holder
--           { 1 released or 0 no grant of the token, 1 if dead waiters remain: repeat, the present holder's token or "" }
--           If the present holder is another request of the caller's client, its first number, last number and TTL in ms follow.
--   Effects grants the lock to the next waiter
function mutex.release(token, queue_args, is_own)
  local client = is_own == '1' and client_of(token) or nil
  if holder == token then
    if is_marked then
      redis.call('DEL', info)
    end
    releasing_client = client
    local more = release_lock()
    return handover_reply or { 1, more and 1 or 0, '' }
  end
  dequeue(token, queue_args)
  if redis.call('HGET', info, 'token') == token then
    redis.call('DEL', info)
  end
  local more = grant_next_if_free()
  if holder and own_first and client and client_of(holder) == client then
    return { 0, 0, holder, own_first, own_last, redis.call('PTTL', lock_key) }
  end
  return { 0, more and 1 or 0, holder_text(holder) }
end

-- The loss status of a token. A break is recorded in info, because the notification may not have reached the holder.
local function loss_status(token)
  local record = redis.call('HMGET', info, 'token', 'broken')
  if record[1] == token and record[2] then
    return 3
  end
  return holder and 2 or 0
end

-- extend token ttl metadata number
--   Raises the TTL of the token's grant. It never lowers the TTL, and never creates a grant. A grant is written even if its TTL stays.
--   metadata   new metadata after a hand-over in the holder's process (number, owner, reason); empty: unchanged
--   number     the fencing token of the lease; empty: unknown. A delayed request may have made a later grant of the same token, with a
--              greater number. That grant is not extended, because another token may have held the lock in between.
--   Reply   1 renewed, or the loss status: 0 lock_key is absent, 2 another token holds lock_key, 3 an operator broke the grant
--   Effects a free lock_key is granted to the next waiter
function mutex.extend(token, ttl, metadata, number)
  if holder ~= token then
    local reason = loss_status(token)
    grant_next_if_free()
    return reason
  elseif number ~= '' and own_first > tonumber(number) then
    return 0
  end
  local ttl_ms = raise_ttl(ttl)
  if metadata ~= '' then
    mark(token)
    write_info(token, ttl_ms, metadata)
  end
  return 1
end

-- verify token
--   Reply   { 1, remaining TTL in ms, first number of the grant }, or { loss status } as of extend
--   Effects none
function mutex.verify(token)
  if holder ~= token then
    return { loss_status(token) }
  end
  return { 1, redis.call('PTTL', lock_key), own_first }
end

-- breakGrant number kind reason
--   Ends the grant with this fencing number for an operator, and notifies its holder.
--   kind   the kind of the holder's channel
--   Reply   { 1 broken or 0 the number is not the present grant's, 1 if dead waiters remain }
--   Effects records the break in info, and grants the lock to the next waiter
function mutex.breakGrant(number, kind, reason)
  local client = holder and string.match(holder, '^%x+:(%x+):%d+$')
  number = tonumber(number)
  if not client or not own_first or number < own_first or number > own_last then
    return { 0, 0 }
  end
  local remaining_ms = redis.call('PTTL', lock_key)
  publish(kind, client, 'broken ' .. cjson.encode({ holder, lock_key, reason }))
  local more = release_lock()
  write_info(holder, math.max(remaining_ms, 1000), cjson.encode({ 'broken', reason }))
  return { 1, more and 1 or 0 }
end

-- inspect
--   Reply   { holder's token or "", remaining TTL in ms, first and last number (as text, "" if unknown),
--             the holder's metadata [field, value, ...], number of waiters, the first 100 queue entries }
--   Effects none
function mutex.inspect()
  local metadata = redis.call('HGETALL', info)
  if not holder or redis.call('HGET', info, 'token') ~= holder then
    metadata = {}
  end
  return {
    holder_text(holder),
    redis.call('PTTL', lock_key),
    own_first and digits(own_first) or '',
    own_last and digits(own_last) or '',
    metadata,
    redis.call('ZCARD', queue),
    redis.call('ZRANGE', queue, 0, 99),
  }
end
