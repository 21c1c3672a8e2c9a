-- acquire token queue_args ttl fence_count wait metadata latest
--   token         "<random>:<client>:<ticket>"; the ticket decides the position in the queue
--   queue_args    the part of the queue entry after the token
--   ttl           TTL in ms of a grant by reply; a grant by notification has the TTL of the queue entry
--   fence_count   how many fencing numbers the grant gets
--   wait          0: only try
--                 1: queue the request if it is not granted
--                 2: as 1, without the run id in the reply
--                 3: as 2, without the limit of the queue, because the caller releases a grant in the same call
--   metadata      owner, reason and labels as JSON of [field, value, ...]; empty: none
--   latest        server time in ms after which the operation must have no effect
--   Reply   the first number alone: granted, with `fence_count` numbers that count at once
--           { 1, first, last, token, delay in ms after which the vote counts, if there is one } granted
--           { 0, remaining TTL in ms (-1 none, -3 not read), position from 0 (-1 not queued), holder's token,
--             run id or "", first number of the present grant } held
--           { 2 } the queue is full
--           { 3 } dead waiters remain: repeat
--           { 4 } the operation came after `latest`
--   Effects a grant, or a queue entry and an inquiry to a later holder

-- A repeated request gets the same grant with the same numbers.
local function repeat_grant(token, queue_entry, ttl, metadata)
  redis.call('ZREM', queue, queue_entry)
  local ttl_ms = raise_ttl(ttl)
  local first, last = grant_numbers()
  if not first then
    forget_vote()
    first, last = write_grant(token, math.max(redis.call('PTTL', lock_key), ttl), 1)
  end
  if redis.call('HGET', info, 'token') ~= token then
    write_info(token, ttl_ms, metadata)
  end
  return { 1, first, last, token, wait_remaining_ms() }
end

-- The reply to a request without a grant. The first reply to a waiter far from the head omits the TTL, because most waiters never repeat
-- their request.
local function held_reply(holder_token, queue_entry, wait, is_repeat)
  local position = queue_entry and redis.call('ZRANK', queue, queue_entry) or -1
  local remaining_ms = (position < 3 or is_repeat) and redis.call('PTTL', lock_key) or -3
  return { 0, remaining_ms, position, holder_text(holder_token), wait == '1' and run_id() or '', is_quorum and grant_numbers() or nil }
end

-- Requests the vote back from a holder whose request is later. A holder with a majority keeps the vote.
local function inquire(token, queue_args)
  local client = not is_shared(holder) and client_of(holder)
  local first = grant_numbers()
  if client and first and precedes(token, holder) then
    publish(string.sub(queue_args, -1), client, table.concat({ 'inquiry', holder, digits(first) }, ' '))
  end
end

-- Adds a queue entry while another token holds lock_key. Returns whether the entry is new.
local function enqueue_and_inquire(token, queue_args)
  if is_quorum then
    inquire(token, queue_args)
  end
  return enqueue(token, token .. ' ' .. queue_args) == 1
end

-- Acquires lock_key, which is absent, or is released by its holder in the same operation.
local function acquire_free(token, queue_entry, ttl, fence_count, wait, metadata)
  if wait ~= '0' then
    note_ttl()
    enqueue(token, queue_entry)
  end
  local next_holder = grant_next(queue_entry)
  if next_holder == false then
    return { 3 }
  elseif next_holder == nil or next_holder == queue_entry then
    local first, last, delay_ms = write_grant(token, ttl, fence_count)
    write_info(token, ttl, metadata)
    return { 1, first, last, token, delay_ms }
  end
  return held_reply(next_holder, wait ~= '0' and queue_entry, wait)
end

local function acquire(token, queue_args, ttl, fence_count, wait, metadata)
  local queue_entry = token .. ' ' .. queue_args
  if not holder and redis.call('EXISTS', queue) == 0 then
    local number, last, delay_ms = write_grant(token, ttl, fence_count)
    write_info(token, ttl, metadata)
    return delay_ms and { 1, number, last, token, delay_ms } or number
  elseif not holder then
    return acquire_free(token, queue_entry, ttl, fence_count, wait, metadata)
  elseif holder == token then
    return repeat_grant(token, queue_entry, ttl, metadata)
  elseif wait == '0' then
    return held_reply(holder, nil, wait)
  end
  local is_new = enqueue_and_inquire(token, queue_args)
  local answer = held_reply(holder, queue_entry, wait, not is_new)
  if is_new and wait ~= '3' and answer[3] >= queue_bound then
    redis.call('ZREM', queue, queue_entry)
    return { 2 }
  end
  return answer
end
