-- The grants of a shared lock: to the waiters of its queue, to a repeated request, and to a new request. Needs shared-holders.lua.
-- On a quorum's node a grant has one number.

-- Grants the lock to the first waiters while their weights fit. Readers at the head are granted together. A waiter with a large weight is
-- never skipped. If a publish fails, the waiter is put back, as by `grant_next` of a mutex.
--   own   the queue entry of the operation's own request; nil: none
--
-- Returns the reply to `own`, if it was granted, and whether more waiters may fit.
local function serve(own, own_ttl, own_fence_count)
  local answer
  for _ = 1, 64 do
    local queue_entry, score = first_waiter()
    local waiter_kind, weight = nil, nil
    if queue_entry then
      waiter_kind, weight = mode_of(queue_entry)
    end
    if not waiter_kind or waiter_kind ~= kind then
      return answer, false
    end
    local token, client, ttl, fence_count, deadline, channel, whole_ttl = parse(queue_entry)
    local is_alive = tonumber(deadline) == 0 or tonumber(deadline) >= now_ms or queue_entry == own
    local may_hold = is_alive and weight <= limit
    if may_hold and used + weight > limit then
      return answer, false
    end
    note_ttl()
    redis.call('ZREM', queue, queue_entry)
    head = nil
    -- An earlier request of the waiter may have been granted.
    local already_holds = holder_entry(token)
    if is_alive and queue_entry ~= own and (already_holds or not may_hold) then
      -- The waiter's next request returns that grant, or the error of a lowered limit.
      publish(channel, client, 'retry ' .. token)
    elseif not already_holds and may_hold and queue_entry == own then
      local first, last, delay_ms = add_holder(token, weight, own_ttl, own_fence_count)
      answer = { 1, first, last, token, delay_ms }
    elseif not already_holds and may_hold and client == releasing_client and not handover_reply then
      local first, last = add_holder(token, weight, whole_ttl, fence_count)
      handover_reply = { 1, 0, token, first, last, tonumber(whole_ttl) }
    elseif not already_holds and may_hold then
      local first, last, delay_ms = add_holder(token, weight, ttl, fence_count)
      local grant_numbers = digits(first) .. ' ' .. digits(last)
      local message = table.concat({ 'grant', token, grant_numbers, digits(now), ttl_text(ttl, delay_ms), run_id(), lock_key }, ' ')
      local receivers = publish(channel, client, message)
      if receivers == 0 then
        remove(token)
      elseif type(receivers) == 'table' then
        remove(token)
        put_back(with_ttl({ queue_entry, score }))
        error(receivers.err, 0)
      end
    end
  end
  return answer, true
end

-- Requests the vote of this node back from its holder. A holder with a majority keeps the vote.
local function inquire(vote_holder, number, channel)
  local client = client_of(vote_holder)
  publish(string.sub(channel, -1), client, table.concat({ 'inquiry', vote_holder, digits(number) }, ' '))
end

-- Sends an inquiry to each later holder whose weight conflicts with the request.
local function inquire_all(token, queue_args)
  local _, weight = mode_of(token)
  for _, other in ipairs(redis.call('ZRANGE', lock_key, 0, 63)) do
    local number, other_weight = holder_entry(other)
    if weight + other_weight > limit and precedes(token, other) then
      inquire(other, number, queue_args)
    end
  end
end

-- Sends an inquiry to a repeated request that conflicts with the first waiter. The request may have missed the first inquiry, and the
-- first waiter may have no vote with which it could cause another inquiry.
local function inquire_repeat(token, number, weight, queue_args)
  local first = parse(first_waiter() or '')
  local _, first_weight = mode_of(first or '')
  if first_weight and weight + first_weight > limit and precedes(first, token) then
    inquire(token, number, queue_args)
  end
end

-- The reply to a request without a grant. Its holder is the one that expires first.
local function held_reply(queue_entry, wait)
  local position = queue_entry and redis.call('ZRANK', queue, queue_entry) or -1
  local first, expiry = earliest_expiry()
  local remaining_ms = first and expiry - now_ms or -1
  local number = nil
  if is_quorum and first then
    number = holder_entry(first)
  end
  return { 0, remaining_ms, position, first or '', (wait == '1' or wait == '3') and run_id() or '', number }
end

-- Raises the expiry of a holder, and never lowers it. For its order, and for the write of an expiry that stays, see `raise_ttl` of one server.
local function repeat_grant(token, number, queue_entry, ttl, metadata)
  extend_key_ttl(tonumber(ttl), true)
  local expiry = tonumber(redis.call('ZSCORE', lock_key, token))
  local _, weight = holder_entry(token)
  local last = last_of(token)
  if expiry < now_ms + ttl then
    redis.call('ZADD', lock_key, now_ms + ttl, token)
    if is_quorum then
      write_holder(token, number, weight, now_ms + ttl)
    end
  end
  redis.call('ZREM', queue, queue_entry)
  write_metadata(token, metadata)
  return { 1, number, last, token, is_quorum and wait_remaining_ms(weight < limit) or nil }
end

-- Grants the lock to a new request that fits and has no earlier waiter.
local function grant_now(token, weight, ttl, fence_count, metadata, known_number)
  local first, last, delay_ms = add_holder(token, weight, ttl, fence_count, known_number)
  write_metadata(token, metadata)
  return { 1, first, last, token, delay_ms }
end

-- Grants the lock to waiters in order, including the operation's own request. If more waiters may fit, the reply is { 3 } even after a
-- grant. The client then repeats the request, which serves those waiters and returns the grant again. Otherwise the waiters would have to
-- poll.
local function acquire_or_enqueue(token, queue_entry, ttl, fence_count, wait, metadata)
  local answer, has_more = serve(queue_entry, ttl, fence_count)
  if has_more then
    return { 3 }
  elseif answer then
    write_metadata(token, metadata)
    return answer
  end
  local own_number = holder_entry(token)
  if own_number then
    return repeat_grant(token, own_number, queue_entry, ttl, metadata)
  end
  return has_more_expired and { 3 } or held_reply(queue_entry, wait)
end

local function try_acquire(token, weight, ttl, fence_count, metadata)
  local _, has_more = serve()
  -- `serve` may have granted an earlier request of the token.
  local number = holder_entry(token)
  if has_more then
    return { 3 }
  elseif number then
    return repeat_grant(token, number, '', ttl, metadata)
  elseif first_waiter() or used + weight > limit then
    return has_more_expired and { 3 } or held_reply(nil, '0')
  end
  return grant_now(token, weight, ttl, fence_count, metadata)
end
