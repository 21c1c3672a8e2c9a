-- acquire token queue_args ttl fence_count wait metadata latest
--   token   "<random>:<client>:<ticket>"; a grant is ours if its whole token is; the ticket is our place in the queue
--   queue_args   what a queue member says after the token
--   ttl     ms, if the answer is the grant (a grant by message has the member's)
--   fence_count    how many fencing numbers
--   wait    0: only try; 1: queue us if we are not granted; 2: the same, and the run id is not asked for; 3: as 2, and the queue's bound
--           does not apply, because the caller gives a grant up in the same call
--   metadata   our own owner, reason, labels as JSON of [field, value, ...]; empty: none
--   latest  server time in ms behind which this must have no effect
-- Answers { 1, first, last, token, in how many ms it counts, if not now } granted
--         { 0, remaining TTL in ms (-1 none, -3 not asked), our position from 0 (-1 not queued), holder's token,
--           run id or "", of a quorum's node the first number of the present grant }
--         { 2 } the queue is full
--         { 3 } dead waiters are left: repeat
--         { 4 } it came too late

-- The same question once more: the same grant, the same numbers.
local function repeat_grant(token, queue_entry, ttl, metadata)
  redis.call('ZREM', queue, queue_entry)
  local lasts = raise_ttl(ttl)
  local first, last = grant_numbers()
  if not first then
    forget_vote()
    first, last = write_grant(token, math.max(redis.call('PTTL', lock_key), ttl), 1)
  end
  if redis.call('HGET', info, 'token') ~= token then
    write_info(token, lasts, metadata)
  end
  return { 1, first, last, token, wait_remaining_ms() }
end

-- Who is far behind is told when the holder's TTL ends if it asks once more, which most do not have to.
local function held_reply(by, queue_entry, wait, is_repeat)
  local position = queue_entry and redis.call('ZRANK', queue, queue_entry) or -1
  local left = (position < 3 or is_repeat) and redis.call('PTTL', lock_key) or -3
  return { 0, left, position, holder_text(by), wait == '1' and run_id() or '', is_quorum and grant_numbers() or nil }
end

-- A rival that came later has the vote of this quorum's node: it is asked to give it back, unless it has won already.
local function inquire(token, queue_args)
  local client = not is_shared(holder) and client_of(holder)
  local first = grant_numbers()
  if client and first and precedes(token, holder) then
    publish(string.sub(queue_args, -1), client, table.concat({ 'inquiry', holder, digits(first) }, ' '))
  end
end

-- lock_key is another's: a place in the queue.
local function enqueue_and_inquire(token, queue_args)
  if is_quorum then
    inquire(token, queue_args)
  end
  return enqueue(token, token .. ' ' .. queue_args) == 1
end

-- lock_key is absent, or its holder gives it up in this very operation.
local function acquire_free(token, queue_entry, ttl, fence_count, wait, metadata)
  if wait ~= '0' then
    note_ttl()
    enqueue(token, queue_entry)
  end
  local next_holder = grant_next(queue_entry)
  if next_holder == false then
    return { 3 }
  elseif next_holder == nil or next_holder == queue_entry then
    local first, last, left = write_grant(token, ttl, fence_count)
    write_info(token, ttl, metadata)
    return { 1, first, last, token, left }
  end
  return held_reply(next_holder, wait ~= '0' and queue_entry, wait)
end

local function acquire(token, queue_args, ttl, fence_count, wait, metadata)
  local queue_entry = token .. ' ' .. queue_args
  if not holder and redis.call('EXISTS', queue) == 0 then
    local number, last, left = write_grant(token, ttl, fence_count)
    write_info(token, ttl, metadata)
    return left and { 1, number, last, token, left } or number
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
