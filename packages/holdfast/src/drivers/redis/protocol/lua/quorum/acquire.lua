-- acquire token terms ttl want wait words latest
--   token   "<random>:<client>:<ticket>"; a grant is ours if its whole token is; the ticket is our place in the queue
--   terms   what a queue member says after the token
--   ttl     ms, if the answer is the grant (a grant by message has the member's)
--   want    how many fencing numbers
--   wait    0: only try; 1: queue us if we are not granted; 2: the same, and the run id is not asked for; 3: as 2, and the queue's bound
--           does not apply, because the caller gives a grant up in the same call
--   words   our own owner, reason, labels as JSON of [field, value, ...]; empty: none
--   latest  server time in ms behind which this must have no effect
-- Answers { 1, first, last, token, in how many ms it counts, if not now } granted
--         { 0, remaining TTL in ms (-1 none, -3 not asked), our position from 0 (-1 not queued), holder's token,
--           run id or "", of a quorum's node the first number of the present grant }
--         { 2 } the queue is full
--         { 3 } dead waiters are left: repeat
--         { 4 } it came too late

-- The same question once more: the same grant, the same numbers.
local function granted_again(token, member, ttl, words)
  redis.call('ZREM', queue, member)
  local lasts = raise_ttl(ttl)
  local first, last = numbers()
  if not first then
    forget()
    first, last = put(token, math.max(redis.call('PTTL', K), ttl), 1)
  end
  if redis.call('HGET', info, 'token') ~= token then
    write_info(token, lasts, words)
  end
  return { 1, first, last, token, left_to_wait() }
end

-- Who is far behind is told when the holder's TTL ends if it asks once more, which most do not have to.
local function held(by, member, wait, is_repeat)
  local position = member and redis.call('ZRANK', queue, member) or -1
  local left = (position < 3 or is_repeat) and redis.call('PTTL', K) or -3
  return { 0, left, position, shown(by), wait == '1' and run_id() or '', is_quorum and numbers() or nil }
end

-- A rival that came later has the vote of this quorum's node: it is asked to give it back, unless it has won already.
local function inquire(token, terms)
  local client = not is_share(holder) and client_of(holder)
  local first = numbers()
  if client and first and precedes(token, holder) then
    publish(string.sub(terms, -1), client, table.concat({ 'inquiry', holder, digits(first) }, ' '))
  end
end

-- K is another's: a place in the queue.
local function stand_in_line(token, terms)
  if is_quorum then
    inquire(token, terms)
  end
  return enqueue(token, token .. ' ' .. terms) == 1
end

-- K is absent, or its holder gives it up in this very operation.
local function take_turn(token, member, ttl, want, wait, words)
  if wait ~= '0' then
    note_ttl()
    enqueue(token, member)
  end
  local next_holder = grant_next(member)
  if next_holder == false then
    return { 3 }
  elseif next_holder == nil or next_holder == member then
    local first, last, left = put(token, ttl, want)
    write_info(token, ttl, words)
    return { 1, first, last, token, left }
  end
  return held(next_holder, wait ~= '0' and member, wait)
end

local function acquire(token, terms, ttl, want, wait, words)
  local member = token .. ' ' .. terms
  if not holder and redis.call('EXISTS', queue) == 0 then
    local number, last, left = put(token, ttl, want)
    write_info(token, ttl, words)
    return left and { 1, number, last, token, left } or number
  elseif not holder then
    return take_turn(token, member, ttl, want, wait, words)
  elseif holder == token then
    return granted_again(token, member, ttl, words)
  elseif wait == '0' then
    return held(holder, nil, wait)
  end
  local is_new = stand_in_line(token, terms)
  local answer = held(holder, member, wait, not is_new)
  if is_new and wait ~= '3' and answer[3] >= queue_bound then
    redis.call('ZREM', queue, member)
    return { 2 }
  end
  return answer
end
