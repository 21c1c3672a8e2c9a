-- Grants of a lock that several holders may share: to the waiters of its queue, to a repeated request, and to a new request.
-- Needs shared-holders.lua. On a quorum's node a grant has one number.

-- Grants to who stands first, as long as there is room for him: readers at the head go together, and who needs much room is not
-- passed over. As `grant_next` of a mutex: an error of the publish puts the member back.
-- Returns the answer to `own`, a member, if its turn has come; whether more may be left to serve.
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
    local already_holds = holder_entry(token) -- by an earlier question
    if is_alive and queue_entry ~= own and (already_holds or not may_hold) then
      publish(channel, client, 'retry ' .. token) -- who asks again has that grant, or is told of the limit
    elseif not already_holds and may_hold and queue_entry == own then
      local first, last, left = add_holder(token, weight, own_ttl, own_fence_count)
      answer = { 1, first, last, token, left }
    elseif not already_holds and may_hold and client == releasing_client and not handover_reply then
      local first, last = add_holder(token, weight, whole_ttl, fence_count)
      handover_reply = { 1, 0, token, first, last, tonumber(whole_ttl) }
    elseif not already_holds and may_hold then
      local first, last, left = add_holder(token, weight, ttl, fence_count)
      local grant_numbers = digits(first) .. ' ' .. digits(last)
      local message = table.concat({ 'grant', token, grant_numbers, digits(now), ttl_text(ttl, left), run_id(), lock_key }, ' ')
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

-- Asks for the vote of this quorum's node back, unless who has it has won.
local function inquire(vote_holder, number, channel)
  local client = client_of(vote_holder)
  publish(string.sub(channel, -1), client, table.concat({ 'inquiry', vote_holder, digits(number) }, ' '))
end

-- Rivals that came later and are in our way are asked to give it back.
local function inquire_all(token, queue_args)
  local _, weight = mode_of(token)
  for _, other in ipairs(redis.call('ZRANGE', lock_key, 0, 63)) do
    local number, other_weight = holder_entry(other)
    if weight + other_weight > limit and precedes(token, other) then
      inquire(other, number, queue_args)
    end
  end
end

-- So is who asks again while he is in the way of whoever came first: he may have missed it, and that one has no votes to ask again for.
local function inquire_repeat(token, number, weight, queue_args)
  local first = parse(first_waiter() or '')
  local _, wanted = mode_of(first or '')
  if wanted and weight + wanted > limit and precedes(first, token) then
    inquire(token, number, queue_args)
  end
end

-- By whom: who will be over first.
local function held_reply(queue_entry, wait)
  local position = queue_entry and redis.call('ZRANK', queue, queue_entry) or -1
  local first, expiry = earliest_expiry()
  local left = first and expiry - now_ms or -1
  local number = nil
  if is_quorum and first then
    number = holder_entry(first)
  end
  return { 0, left, position, first or '', (wait == '1' or wait == '3') and run_id() or '', number }
end

local function repeat_grant(token, number, queue_entry, ttl, metadata)
  local expiry = tonumber(redis.call('ZSCORE', lock_key, token))
  local _, weight = holder_entry(token)
  local last = last_of(token)
  if expiry < now_ms + ttl then
    redis.call('ZADD', lock_key, now_ms + ttl, token)
    if is_quorum then
      write_holder(token, number, weight, now_ms + ttl)
    end
  end
  extend_key_ttl(tonumber(ttl))
  redis.call('ZREM', queue, queue_entry)
  write_metadata(token, metadata)
  return { 1, number, last, token, is_quorum and wait_remaining_ms(weight < limit) or nil }
end

-- There is room, and nobody is before us.
local function grant_now(token, weight, ttl, fence_count, metadata, known_number)
  local first, last, left = add_holder(token, weight, ttl, fence_count, known_number)
  write_metadata(token, metadata)
  return { 1, first, last, token, left }
end

-- Whoever stands in the queue is served in turn, and us with them. Who is granted and has more to serve repeats as well, and is
-- granted again: nobody else would come for them soon.
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
  return has_expired_ones and { 3 } or held_reply(queue_entry, wait)
end

local function try_acquire(token, weight, ttl, fence_count, metadata)
  local _, has_more = serve()
  local number = holder_entry(token) -- an earlier question stood in the queue
  if has_more then
    return { 3 }
  elseif number then
    return repeat_grant(token, number, '', ttl, metadata)
  elseif first_waiter() or used + weight > limit then
    return has_expired_ones and { 3 } or held_reply(nil, '0')
  end
  return grant_now(token, weight, ttl, fence_count, metadata)
end
