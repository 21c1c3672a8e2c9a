-- What is done with a mutex on one server.

local mutex = {}

local function grant(token, ttl, want, words)
  write_info(token, ttl, words) -- before K: where this fails, nothing is granted
  local first, last = put(token, ttl, want, words ~= '')
  return first == last and first or { 1, first, last, token }
end

-- The same question once more: the same grant, the same numbers.
local function granted_again(token, member, ttl, words)
  redis.call('ZREM', queue, member)
  if words ~= '' and redis.call('HGET', info, 'token') ~= token then
    mark(token)
    write_info(token, ttl, words)
  end
  raise_ttl(ttl)
  return { 1, own_first, own_last, token }
end

-- A waiter far behind is told when the holder's TTL ends if it asks once more, which most do not have to.
local function held(by, member, wait, is_repeat)
  local position = member and redis.call('ZRANK', queue, member) or -1
  local left = (position < 3 or is_repeat) and redis.call('PTTL', K) or -3
  return { 0, left, position, shown(by), (wait == '1' or wait == '3') and run_id() or '' }
end

-- K is absent.
local function take_turn(token, member, ttl, want, wait, words)
  if redis.call('EXISTS', queue) == 0 then
    return grant(token, ttl, want, words)
  elseif wait ~= '0' then
    note_ttl()
    enqueue(token, member)
  end
  local next_holder = grant_next(member)
  if next_holder == false then
    return { 3 }
  elseif next_holder == nil or next_holder == member then
    return grant(token, ttl, want, words)
  end
  return held(next_holder, wait ~= '0' and member, wait)
end

-- acquire token terms ttl want wait words latest
--   token   "<random>:<client>:<ticket>"; a grant is ours if its whole token is; the ticket is our place in the queue
--   terms   what a queue member says after the token
--   ttl     ms, if the answer is the grant (a grant by message has the member's)
--   want    how many fencing numbers at the most
--   wait    0: only try; 1: queue us if we are not granted; 2: the same, and the run id is not asked for; 3 and 4: as 1 and 2, and
--           the queue's bound does not apply, because the caller gives a grant up in the same call
--   words   our own owner, reason, labels as JSON of [field, value, ...]; empty: none
--   latest  server time in ms behind which this must have no effect
-- Answers { 1, first, last, token } granted, or the number alone where it is one
--         { 0, remaining TTL in ms (-1 none, -3 not asked), our position from 0 (-1 not queued), holder's token, run id or "" }
--         { 2 } the queue is full
--         { 3 } dead waiters are left: repeat
--         { 4 } it came too late
function mutex.acquire(token, terms, ttl, want, wait, words)
  local member = token .. ' ' .. terms
  if not holder then
    return take_turn(token, member, ttl, want, wait, words)
  elseif holder == token then
    return granted_again(token, member, ttl, words)
  elseif wait == '0' then
    return held(holder, nil, wait)
  end
  local is_new = enqueue(token, member) == 1
  local answer = held(holder, member, wait, not is_new)
  if is_new and tonumber(wait) < 3 and answer[3] >= queue_bound then
    redis.call('ZREM', queue, member)
    return { 2 }
  end
  return answer
end

-- release token terms is_own
--   Gives the grant back, or leaves the queue; so it is cancel as well.
--   is_own: 1 where the token is the caller's own, so a next holder of the same client needs no message
-- Answers 1: released, and nothing is left
--         { 1 released or 0 it was not ours, 1 if dead waiters are left: repeat, the present holder's token or "" } and, where that is a
--         request of the caller: its first and last number, its TTL in ms
function mutex.release(token, terms, is_own)
  local client = is_own == '1' and client_of(token) or nil
  if holder == token then
    if is_marked then
      redis.call('DEL', info)
    end
    giver = client
    local more = let_go()
    return given or { 1, more and 1 or 0, '' }
  end
  leave(token, terms)
  if redis.call('HGET', info, 'token') == token then
    redis.call('DEL', info)
  end
  local more = serve_next()
  if holder and own_first and client and client_of(holder) == client then
    return { 0, 0, holder, own_first, own_last, redis.call('PTTL', K) }
  end
  return { 0, more and 1 or 0, shown(holder) }
end

-- A break leaves word beside the key for a holder that the message did not reach.
local function why_not(token)
  local left = redis.call('HMGET', info, 'token', 'broken')
  if left[1] == token and left[2] then
    return 3
  end
  return holder and 2 or 0
end

-- extend token ttl words number
--   Raises the TTL of a grant that is ours; never shortens it and never creates it again.
--   words: what changed hands inside the holder's process (its number, owner, reason); empty: nothing
--   number: of the lease. A later grant of the same token, made by a request that came late, has a greater one and is not extended:
--   others may have held the lock in between
-- Answers 1 renewed, or why not: 0 K is absent, 2 K is another's, 3 an operator broke it
function mutex.extend(token, ttl, words, number)
  if holder ~= token then
    local reason = why_not(token)
    serve_next()
    return reason
  elseif number ~= '' and own_first > tonumber(number) then
    return 0
  elseif words ~= '' then
    mark(token)
    write_info(token, ttl, words)
  end
  raise_ttl(ttl)
  return 1
end

-- verify token
--   Asks whether a grant is still ours, and changes nothing.
-- Answers { 1, remaining TTL in ms, first number of the grant }, or { why not }, as extend says it
function mutex.verify(token)
  if holder ~= token then
    return { why_not(token) }
  end
  return { 1, redis.call('PTTL', K), own_first }
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
  local left = redis.call('PTTL', K)
  publish(kind, client, 'broken ' .. cjson.encode({ holder, K, reason }))
  local more = let_go()
  write_info(holder, math.max(left, 1000), cjson.encode({ 'broken', reason }))
  return { 1, more and 1 or 0 }
end

-- inspect
-- Answers { holder's token or "", remaining TTL in ms, first and last number (as text, "" unknown),
--           the holder's own words [field, value, ...], number of waiters, the first 100 members }
function mutex.inspect()
  local words = redis.call('HGETALL', info)
  if not holder or redis.call('HGET', info, 'token') ~= holder then
    words = {}
  end
  return {
    shown(holder),
    redis.call('PTTL', K),
    own_first and digits(own_first) or '',
    own_last and digits(own_last) or '',
    words,
    redis.call('ZCARD', queue),
    redis.call('ZRANGE', queue, 0, 99),
  }
end
