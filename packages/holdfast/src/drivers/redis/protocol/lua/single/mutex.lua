-- What is done with a mutex on one server.

local mutex = {}

local function grant(token, ttl, fence_count, metadata)
  write_info(token, ttl, metadata) -- before lock_key: where this fails, nothing is granted
  local first, last = write_grant(token, ttl, fence_count, metadata ~= '')
  return first == last and first or { 1, first, last, token }
end

-- The same question once more: the same grant, the same numbers.
local function repeat_grant(token, queue_entry, ttl, metadata)
  redis.call('ZREM', queue, queue_entry)
  if metadata ~= '' and redis.call('HGET', info, 'token') ~= token then
    mark(token)
    write_info(token, ttl, metadata)
  end
  raise_ttl(ttl)
  return { 1, own_first, own_last, token }
end

-- A waiter far behind is told when the holder's TTL ends if it asks once more, which most do not have to.
local function held_reply(by, queue_entry, wait, is_repeat)
  local position = queue_entry and redis.call('ZRANK', queue, queue_entry) or -1
  local left = (position < 3 or is_repeat) and redis.call('PTTL', lock_key) or -3
  return { 0, left, position, holder_text(by), (wait == '1' or wait == '3') and run_id() or '' }
end

-- lock_key is absent.
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
--   token   "<random>:<client>:<ticket>"; a grant is ours if its whole token is; the ticket is our place in the queue
--   queue_args   what a queue member says after the token
--   ttl     ms, if the answer is the grant (a grant by message has the member's)
--   fence_count    how many fencing numbers at the most
--   wait    0: only try; 1: queue us if we are not granted; 2: the same, and the run id is not asked for; 3 and 4: as 1 and 2, and
--           the queue's bound does not apply, because the caller gives a grant up in the same call
--   metadata   our own owner, reason, labels as JSON of [field, value, ...]; empty: none
--   latest  server time in ms behind which this must have no effect
-- Answers { 1, first, last, token } granted, or the number alone where it is one
--         { 0, remaining TTL in ms (-1 none, -3 not asked), our position from 0 (-1 not queued), holder's token, run id or "" }
--         { 2 } the queue is full
--         { 3 } dead waiters are left: repeat
--         { 4 } it came too late
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
--   Gives the grant back, or leaves the queue; so it is cancel as well.
--   is_own: 1 where the token is the caller's own, so a next holder of the same client needs no message
-- Answers 1: released, and nothing is left
--         { 1 released or 0 it was not ours, 1 if dead waiters are left: repeat, the present holder's token or "" } and, where that is a
--         request of the caller: its first and last number, its TTL in ms
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

-- A break leaves word beside the key for a holder that the message did not reach.
local function loss_status(token)
  local left = redis.call('HMGET', info, 'token', 'broken')
  if left[1] == token and left[2] then
    return 3
  end
  return holder and 2 or 0
end

-- extend token ttl metadata number
--   Raises the TTL of a grant that is ours; never shortens it and never creates it again.
--   words: what changed hands inside the holder's process (its number, owner, reason); empty: nothing
--   number: of the lease. A later grant of the same token, made by a request that came late, has a greater one and is not extended:
--   others may have held the lock in between
-- Answers 1 renewed, or why not: 0 lock_key is absent, 2 lock_key is another's, 3 an operator broke it
function mutex.extend(token, ttl, metadata, number)
  if holder ~= token then
    local reason = loss_status(token)
    grant_next_if_free()
    return reason
  elseif number ~= '' and own_first > tonumber(number) then
    return 0
  elseif metadata ~= '' then
    mark(token)
    write_info(token, ttl, metadata)
  end
  raise_ttl(ttl)
  return 1
end

-- verify token
--   Asks whether a grant is still ours, and changes nothing.
-- Answers { 1, remaining TTL in ms, first number of the grant }, or { why not }, as extend says it
function mutex.verify(token)
  if holder ~= token then
    return { loss_status(token) }
  end
  return { 1, redis.call('PTTL', lock_key), own_first }
end

-- breakGrant number kind reason
--   An operator's force: ends the grant that the number belongs to, and tells its holder.
-- Answers { 1 broken or 0 that grant is not the present one, 1 if dead waiters are left }
function mutex.breakGrant(number, kind, reason)
  local client = holder and string.match(holder, '^%x+:(%x+):%d+$')
  number = tonumber(number)
  if not client or not own_first or number < own_first or number > own_last then
    return { 0, 0 }
  end
  local left = redis.call('PTTL', lock_key)
  publish(kind, client, 'broken ' .. cjson.encode({ holder, lock_key, reason }))
  local more = release_lock()
  write_info(holder, math.max(left, 1000), cjson.encode({ 'broken', reason }))
  return { 1, more and 1 or 0 }
end

-- inspect
-- Answers { holder's token or "", remaining TTL in ms, first and last number (as text, "" unknown),
--           the holder's own words [field, value, ...], number of waiters, the first 100 members }
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
