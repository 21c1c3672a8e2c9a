-- The operations on a shared lock. Arguments, replies and effects are those of a mutex, unless stated below. On a quorum's node a grant has
-- one number. Needs shared-holders.lua and shared-lock-grants.lua.

local shared = {}

function shared.acquire(token, queue_args, ttl, fence_count, wait, metadata)
  local queue_entry = token .. ' ' .. queue_args
  local number, known_weight = holder_entry(token)
  local _, weight = mode_of(token)
  -- A restored holder has lost its numbers, so a repeated request gets new ones.
  if number == 0 then
    local first, last = next_shared_fence(fence_count, newest)
    write_holder(token, first, known_weight, nil, last - first + 1)
    number = first
  end
  local waits = not number and first_waiter() and redis.call('ZSCORE', queue, queue_entry)
  -- A queued request is checked again if the limit was lowered below its weight.
  if not number and (not waits or limit and weight > limit) then
    check(token)
  end
  if number then
    redis.call('ZREM', queue, queue_entry)
    head = nil
    if is_quorum then
      inquire_repeat(token, number, known_weight, queue_args)
    end
    return acquire_or_enqueue(token, queue_entry, ttl, fence_count, wait, metadata)
  elseif wait == '0' then
    return try_acquire(token, weight, ttl, fence_count, metadata)
  elseif not first_waiter() and used + weight <= limit then
    return grant_now(token, weight, ttl, fence_count, metadata)
  end
  enqueue_waiter(token, queue_entry)
  if is_quorum then
    inquire_all(token, queue_args)
  end
  local answer = acquire_or_enqueue(token, queue_entry, ttl, fence_count, wait, metadata)
  if answer[1] == 0 and not waits and tonumber(wait) < 3 and answer[3] >= queue_bound then
    redis.call('ZREM', queue, queue_entry)
    return { 2 }
  end
  return answer
end

function shared.release(token, queue_args, is_own)
  local is_holder = holder_entry(token)
  if is_holder then
    releasing_client = is_own == '1' and client_of(token) or nil
    -- A holder has no queue entry.
    remove(token)
  else
    dequeue(token, queue_args)
    head = nil
  end
  local _, has_more = serve()
  if handover_reply then
    handover_reply[2] = has_more and 1 or 0
    return handover_reply
  end
  return { is_holder and 1 or 0, has_more and 1 or 0, earliest_expiry() or '' }
end

local function loss_status(token)
  return redis.call('HGET', settings_key(), 'broken') == token and 3 or 0
end

function shared.extend(token, ttl, metadata, number)
  local own_number = holder_entry(token)
  if not own_number then
    local reason = loss_status(token)
    serve()
    return is_quorum and { reason } or reason
  elseif number ~= '' and own_number > tonumber(number) then
    return is_quorum and { 0 } or 0
  end
  repeat_grant(token, own_number, '', ttl, metadata)
  return is_quorum and { 1, own_number } or 1
end

function shared.verify(token)
  local number = holder_entry(token)
  if not number then
    return { loss_status(token) }
  end
  return { 1, redis.call('ZSCORE', lock_key, token) - now_ms, number }
end

-- Every holder, as { token, remaining ms, first number, weight, metadata, last number }.
local function holders()
  local found = {}
  local held = redis.call('ZRANGE', lock_key, 0, -1, 'WITHSCORES')
  for i = 1, #held, 2 do
    local number, weight = holder_entry(held[i])
    local metadata = redis.call('HGET', info, 'w' .. held[i])
    found[#found + 1] = { held[i], held[i + 1] - now_ms, digits(number), weight, metadata or '', digits(last_of(held[i])) }
  end
  return found
end

-- breakGrant number kind reason
--   number   a fencing number of the grant, or its token, because the nodes of a quorum may have given different numbers
function shared.breakGrant(number, channel, reason)
  local named = tonumber(number)
  for _, holder_found in ipairs(holders()) do
    local first, last = tonumber(holder_found[3]), tonumber(holder_found[6])
    if holder_found[1] == number or named and named >= first and named <= last then
      local token = holder_found[1]
      local client = client_of(token)
      publish(channel, client, 'broken ' .. cjson.encode({ token, lock_key, reason }))
      remove(token)
      redis.call('HSET', settings_key(), 'broken', token)
      -- The record of the break lasts as long as the holder may rely on its lease.
      extend_settings(math.max(holder_found[2], 1000))
      local _, has_more = serve()
      return { 1, has_more and 1 or 0 }
    end
  end
  return { 0, 0 }
end

-- inspect
--   Reply   { "", -2, first, last, [], number of waiters, the first 100 queue entries, kind, limit, holders }
function shared.inspect()
  local first, last = grant_numbers()
  return {
    '',
    -2,
    first and digits(first) or '',
    last and digits(last) or '',
    {},
    redis.call('ZCARD', queue),
    redis.call('ZRANGE', queue, 0, 99),
    kind,
    limit,
    holders(),
  }
end

function shared.yield(token, queue_args, number, ttl, _, metadata)
  if holder_entry(token) ~= tonumber(number) then
    return shared.acquire(token, queue_args, ttl, '1', '2', metadata)
  end
  remove(token)
  enqueue_waiter(token, token .. ' ' .. queue_args)
  return acquire_or_enqueue(token, token .. ' ' .. queue_args, ttl, '1', '2', metadata)
end

function shared.raiseFence(token, number)
  local own_number, weight, expiry = holder_entry(token)
  if not own_number then
    return { 0 }
  end
  number = tonumber(number)
  if own_number < number then
    own_number = number
    permit_writes()
    write_holder(token, number, weight, expiry)
    local _, last = grant_numbers()
    if last < number then
      redis.call('HSET', fence, 'first', digits(number), 'last', digits(number))
    end
  end
  return { 1, own_number, own_number }
end

function shared.refill(token, queue_args, ttl, number, _, latest)
  local own_number, known_weight, expiry = holder_entry(token)
  local _, weight = mode_of(token)
  number = tonumber(number)
  if now_ms > tonumber(latest) then
    return { 0 }
  elseif own_number then
    if own_number > number then
      write_holder(token, number, known_weight, expiry)
    end
    return repeat_grant(token, math.min(number, own_number), '', ttl, '')
  end
  dequeue(token, queue_args)
  head = nil
  check(token)
  serve()
  if first_waiter() or used + weight > limit then
    return { 0 }
  end
  if number > (newest or 0) then
    redis.call('HSET', fence, 'first', digits(number), 'last', digits(number))
  end
  return grant_now(token, weight, ttl, '1', '', number)
end

-- downgrade token queue_args
--   Makes a writer a reader with the same token.
--   Reply   { 1, 1 if more waiters may fit }, or { loss status }
function shared.downgrade(token)
  local number, weight, expiry = holder_entry(token)
  if not number then
    return { loss_status(token) }
  end
  -- After a repeat the weight is already 1, and there may be other readers.
  used = used - weight + 1
  permit_writes()
  write_holder(token, number, 1, expiry)
  local _, has_more = serve()
  return { 1, has_more and 1 or 0 }
end

-- setLimit limit
--   Sets the limit of a semaphore. Present holders keep their permits.
--   Reply   { 1, 1 if more waiters may fit }
function shared.setLimit(new_limit)
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  local present = first and (mode_of(first) or 'mutex') or used > 0 and kind
  if present and present ~= 'semaphore' then
    error('KINDMISMATCH ' .. present, 0)
  end
  kind, limit = 'semaphore', tonumber(new_limit)
  if is_quorum or present then
    redis.call('HSET', settings_key(), 'kind', kind, 'limit', new_limit)
    extend_settings(math.max(redis.call('PTTL', lock_key), 60000))
  end
  local _, has_more = serve()
  return { 1, has_more and 1 or 0 }
end

-- Removes expired holders. Returns whether lock_key has no holder left, and false for a sorted set of another program.
local function is_free()
  return pcall(load_state) and redis.call('EXISTS', lock_key) == 0
end

function shared.perform(name, ...)
  load_state((...), name)
  if not shared[name] then
    error('KINDMISMATCH ' .. (kind or 'mutex'), 0)
  end
  local answer = shared[name](...)
  clear_settings()
  return answer
end
