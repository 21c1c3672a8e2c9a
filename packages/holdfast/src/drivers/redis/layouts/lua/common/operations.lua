-- The operations on one lock. A layout defines before:
--   other_kind(mode)   an error if the key is no lock of this kind; mode: '' mutex, 'r' reader, 'w' writer, nil any kind
--   is_free(mode)      whether a request of this mode may be granted
--   own_ttl(token)     the remaining TTL of the token's grant, ms; nil: it has none
--   hold(mode, ttl)    writes the grant of the request
--   prolong(ttl)       raises the TTL of the request's grant
--   end_grant(token)   removes the token's grant, and wakes waiters if the lock is free
--   downgrade()        turns the request's grant into a reader's
--   holders(max)       { text of the holder, remaining TTL or -1, mode, token or '' }, ...
--   next_fence()       the fencing number of a new grant, or nil and an error

local function wake_own_waiters()
  if redis.call('EXISTS', queue) == 1 then
    publish(own_channel, 'free ' .. lock_key)
  end
end

local function shown_holder()
  local first = holders(1)[1]
  if not first then
    return {}
  end
  return { first[1], first[2], first[3], redis.call('HGET', records, 'h:' .. first[4]) or '' }
end

local function grant(mode, ttl, metadata)
  local was_free = redis.call('EXISTS', lock_key) == 0
  -- A server with full memory refuses only the first write of a script. So it refuses new requests, and grants the lock to its waiters.
  if redis.call('ZSCORE', queue, token) then
    remove_entry(token)
  end
  local fence, failure = next_fence() -- if the server refuses this write, nothing is granted
  if not fence then
    return redis.error_reply(failure)
  end
  hold(mode, ttl)
  record(fence, metadata, ttl, was_free)
  if mode == 'r' then
    wake_own_waiters() -- the next waiter may be a reader
  end
  return { 'granted', fence, ttl }
end

-- The reply to a repeat of a granted request.
local function grant_again(ttl, metadata)
  local fence = fence_of(token)
  if not fence then
    local failure
    fence, failure = next_fence() -- the record was evicted
    if not fence then
      return redis.error_reply(failure)
    end
  end
  prolong(ttl)
  record(fence, metadata, ttl, false)
  remove_entry(token)
  return { 'granted', fence, own_ttl(token) }
end

-- The time until the request may be granted without a release. If only the first waiter prevents the grant, that waiter may expire.
local function until_next_chance(mode)
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  if first ~= token and is_free(mode) then
    return math.max(1, (redis.call('ZSCORE', seen, first) or now) - now)
  end
  return redis.call('PTTL', lock_key)
end

local function acquire()
  local mode, ttl, entry_ttl, ticket, owner, metadata, bound = unpack(ARGV, 7)
  ttl = tonumber(ttl)
  local failure = other_kind(mode)
  if failure then
    return redis.error_reply(failure)
  end
  remove_dead_entries()
  if own_ttl(token) then
    return grant_again(ttl, metadata)
  elseif is_first(ticket) and is_free(mode) then
    return grant(mode, ttl, metadata)
  elseif entry_ttl == '' then
    local position = redis.call('ZRANK', queue, token) or redis.call('ZCARD', queue)
    remove_entry(token)
    return { 'held', position, shown_holder() }
  end
  ticket = enter(ticket, tonumber(entry_ttl), owner, bound)
  if not ticket then
    return { 'full' }
  end
  local is_foreign = shown_holder()[4] == ''
  return { 'queued', ticket, redis.call('ZRANK', queue, token), until_next_chance(mode), is_foreign and 1 or 0 }
end

local function extend()
  local ttl, fence, metadata = unpack(ARGV, 7)
  if not own_ttl(token) or is_later(fence) then
    return loss()
  end
  prolong(tonumber(ttl))
  if metadata ~= '' and fence_of(token) then
    redis.call('HSET', records, 'h:' .. token, fence_of(token) .. ' ' .. metadata)
  end
  keep(records, own_ttl(token) + 1000)
  return own_ttl(token)
end

local function release()
  local was_held = own_ttl(token)
  end_grant(token)
  forget(token)
  if redis.call('ZSCORE', queue, token) then
    remove_entry(token)
    wake_own_waiters()
  end
  return was_held and 1 or 0
end

local function break_grant()
  local fence, reason = unpack(ARGV, 7)
  local holder = redis.call('HGET', records, 'f:' .. fence)
  local remaining = holder and own_ttl(holder)
  if not remaining then
    return false
  end
  end_grant(holder)
  forget(holder)
  redis.call('HSET', notes, 'b:' .. holder, reason)
  keep(notes, remaining + 1000)
  publish(own_channel, 'broken ' .. holder)
  return holder
end

local function verify()
  if is_later(ARGV[7]) then
    return loss()
  end
  local ttl = own_ttl(token)
  if ttl == no_expiry then
    return -1 -- an extension gives the grant a TTL, and its reply states the validity
  end
  return ttl or loss()
end

local function is_current()
  local holder = redis.call('HGET', records, 'f:' .. ARGV[7])
  return holder and own_ttl(holder) and 1 or 0
end

local function inspect()
  local max = tonumber(ARGV[7])
  local failure = other_kind(nil)
  if failure then
    return redis.error_reply(failure)
  end
  local shown, waiting = {}, {}
  for i, holder in ipairs(holders(max)) do
    shown[i] = { holder[1], holder[2], holder[3], redis.call('HGET', records, 'h:' .. holder[4]) or '' }
  end
  local living = {}
  for _, entry in ipairs(redis.call('ZRANGEBYSCORE', seen, '(' .. now, '+inf')) do
    living[entry] = true
  end
  local count = 0
  local entries = redis.call('ZRANGE', queue, 0, -1, 'WITHSCORES')
  for i = 1, #entries, 2 do
    local entry, ticket = entries[i], tonumber(entries[i + 1])
    if living[entry] then
      count = count + 1
      if count <= max then
        local owner = redis.call('HGET', notes, 'q:' .. entry) or ''
        waiting[count] = { owner, digits(ticket) }
      end
    end
  end
  return { shown, waiting, count, digits(now_micros) }
end

local operations = {
  acquire = acquire,
  extend = extend,
  release = release,
  downgrade = downgrade,
  ['break'] = break_grant,
  verify = verify,
  current = is_current,
  inspect = inspect,
}
-- A replica's data may be outdated. The other operations write, so a replica refuses them.
local reads = operation == 'verify' or operation == 'current' or operation == 'inspect'
if reads and not serves_reads and not string.find(redis.call('INFO', 'replication'), 'role:master', 1, true) then
  return redis.error_reply('READONLY A replica does not serve locks')
end
return operations[operation]()
