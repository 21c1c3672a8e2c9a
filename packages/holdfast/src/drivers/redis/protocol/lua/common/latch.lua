-- Latches. Each attempt counts a latch down once. A latch at zero is open until its TTL ends.
--
--   lock_key   hash:
--                latch        the initial count
--                left         the remaining count
--                born         server time in microseconds; distinguishes a latch from later latches of the same key
--                ends         expiry, server ms
--                a<attempt>   one field for each attempt that has counted, until the latch is open
--   queue      sorted set of waiters, "<token> <channel>", by the server ms at which each waiter must have polled again
--
-- The first operation on a latch creates the latch. Both keys expire together, and no operation extends them.

local now_ms = math.floor(now / 1000)
-- Three times the longest poll delay of a waiter.
local expected_ms = 15000
local notify_batch_size = 256
local waiter_form = '^%x+:(%x+):%d+ (%a%w*)$'
local total, remaining, created_at, expiry

-- Returns whether there is a latch.
local function load_state()
  local found = redis.call('HMGET', lock_key, 'latch', 'left', 'born', 'ends')
  total, remaining, created_at, expiry = tonumber(found[1]), tonumber(found[2]), found[3], tonumber(found[4])
  if total and remaining and created_at and expiry then
    return true
  elseif redis.call('EXISTS', lock_key) == 1 then
    error('KINDMISMATCH unknown hash', 0)
  end
end

-- Writes the whole state, without the attempts that have counted.
local function write()
  local text = digits(expiry)
  redis.call('HSET', lock_key, 'latch', total, 'left', remaining, 'born', created_at, 'ends', text)
  redis.call('PEXPIREAT', lock_key, text)
end

-- Returns whether the latch is the caller's: the caller knows this latch, or no latch yet.
local function load_or_create(count, ttl, known)
  count = tonumber(count)
  if load_state() then
    if known ~= '' and known ~= created_at then
      return false
    elseif total ~= count then
      error('COUNTMISMATCH ' .. total, 0)
    end
    return true
  elseif known ~= '' then
    return false
  end
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  if first and string.find(first, waiter_form) then
    -- The queue of an earlier latch whose lock_key was evicted or deleted. Its waiters poll again.
    redis.call('DEL', queue)
  elseif first then
    error('KINDMISMATCH ' .. (is_shared(first) and 'read-write or semaphore' or 'mutex'), 0)
  end
  total, remaining, created_at, expiry = count, count, digits(now), now_ms + ttl
  write()
  return true
end

-- Notifies waiters that the latch is open, once for each process, and at most one batch in each call. A waiter that misses the
-- notification finds out at its next poll. Returns 1 if more waiters remain.
local function notify_waiters()
  local notified = {}
  for _ = 1, notify_batch_size do
    local queue_entry = redis.call('ZPOPMIN', queue)[1]
    if not queue_entry then
      return 0
    end
    local client, kind = string.match(queue_entry, waiter_form)
    if client and not notified[client .. kind] then
      notified[client .. kind] = true
      publish(kind, client, 'latch-open ' .. created_at .. ' ' .. lock_key)
    end
  end
  return redis.call('EXISTS', queue)
end

local function reply()
  local more = remaining == 0 and notify_waiters() or 0
  return { 1, remaining, created_at, math.max(0, expiry - now_ms), more }
end

local latch = {}

-- countDown token count ttl known latest
--   known    creation time of the latch that the caller knows; "": none yet. Without it a client library that resends the operation may
--            count a second time, on the next latch of the key
--   latest   server time in ms after which the operation must have no effect, because a later latch of the key may exist by then
--   Reply   { 1, remaining count, creation time, ms until the expiry, 1 if more waiters remain to be notified, 1 counted }
--           { 0 } the latch that the caller knows has expired
--           { 3 } the operation came after `latest`
function latch.countDown(token, count, ttl, known, latest)
  if now_ms > tonumber(latest) then
    return { 3 }
  elseif not load_or_create(count, ttl, known) then
    return { 0 }
  end
  local attempt = 'a' .. string.sub(token, 1, 32)
  if remaining > 1 and redis.call('HEXISTS', lock_key, attempt) == 0 then
    remaining = remaining - 1
    redis.call('HSET', lock_key, attempt, 1, 'left', remaining)
  elseif remaining == 1 and redis.call('HEXISTS', lock_key, attempt) == 0 then
    remaining = 0
    -- An open latch no longer needs its attempts.
    redis.call('UNLINK', lock_key)
    write()
  end
  local answer = reply()
  answer[6] = 1
  return answer
end

-- waitLatch token count ttl known latest kind
--   kind   the kind of the client's channel; n: do not queue, only read the count
--   Reply   as of countDown without the last value, or { 2 } the queue is full
function latch.waitLatch(token, count, ttl, known, latest, kind)
  if now_ms > tonumber(latest) then
    return { 3 }
  elseif not load_or_create(count, ttl, known) then
    return { 0 }
  elseif remaining > 0 and kind ~= 'n' then
    local queue_entry = token .. ' ' .. kind
    redis.call('ZREMRANGEBYSCORE', queue, '-inf', now_ms)
    if redis.call('ZCARD', queue) >= queue_bound and not redis.call('ZSCORE', queue, queue_entry) then
      return { 2 }
    end
    redis.call('ZADD', queue, now_ms + expected_ms, queue_entry)
    redis.call('PEXPIREAT', queue, digits(expiry))
  end
  return reply()
end

-- leaveLatchQueue token kind
--   Reply   { 1 }
function latch.leaveLatchQueue(token, kind)
  redis.call('ZREM', queue, token .. ' ' .. kind)
  return { 1 }
end

-- inspect
--   Reply   { "", ms until the expiry, first, last, [], number of waiters, queue entries, "latch", initial count, remaining count }
function latch.inspect()
  load_state()
  local first, last = grant_numbers()
  redis.call('ZREMRANGEBYSCORE', queue, '-inf', now_ms)
  return {
    '',
    math.max(0, expiry - now_ms),
    first and digits(first) or '',
    last and digits(last) or '',
    {},
    redis.call('ZCARD', queue),
    redis.call('ZRANGE', queue, 0, 99),
    'latch',
    total,
    remaining,
  }
end

-- Operations of other kinds. The key is a latch now, so every former grant of the key has ended.

function latch.release()
  return { 0, 0, '' }
end

function latch.verify()
  return { 0 }
end
latch.downgrade = latch.verify

function latch.extend()
  return is_quorum and { 0 } or 0
end

function latch.breakGrant()
  return { 0, 0 }
end
