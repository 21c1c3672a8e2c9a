-- Latches: counted down to zero, once by each attempt, and open from then on until their TTL is over.
--
-- lock_key      hash: latch (the count it began with), left, born (server time in microseconds, which tells one latch of a key from the
--        next), ends (server ms); until it is open also a<attempt> for each attempt that has counted
-- queue  sorted set of who waits: "<token> <channel>" by the server ms until which it is expected to ask again
--
-- Who first touches a latch makes it. Both expire together, whatever is done.

local now_ms = math.floor(now / 1000)
local expected_ms = 15000 -- three times the longest pause of who waits
local notify_batch_size = 256
local waiter_form = '^%x+:(%x+):%d+ (%a%w*)$'
local total, left, created_at, ends

-- Answers whether there is a latch.
local function load_state()
  local found = redis.call('HMGET', lock_key, 'latch', 'left', 'born', 'ends')
  total, left, created_at, ends = tonumber(found[1]), tonumber(found[2]), found[3], tonumber(found[4])
  if total and left and created_at and ends then
    return true
  elseif redis.call('EXISTS', lock_key) == 1 then
    error('KINDMISMATCH a hash of others', 0)
  end
end

-- The state as a whole, in which attempts that have counted are not told any more.
local function write()
  local text = digits(ends)
  redis.call('HSET', lock_key, 'latch', total, 'left', left, 'born', created_at, 'ends', text)
  redis.call('PEXPIREAT', lock_key, text)
end

-- Answers whether the latch is the one that the caller knows, or the first that he hears of.
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
    redis.call('DEL', queue) -- of a latch that was taken away before its time: who waits for it asks again
  elseif first then
    error('KINDMISMATCH ' .. (is_shared(first) and 'one that several may hold' or 'mutex'), 0)
  end
  total, left, created_at, ends = count, count, digits(now), now_ms + ttl
  write()
  return true
end

-- Tells who waits that it is open, which is written already: once for each process, and in parts where they are many.
-- Who cannot be told asks again by himself. Answers 1 where more are left.
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
  local more = left == 0 and notify_waiters() or 0
  return { 1, left, created_at, math.max(0, ends - now_ms), more }
end

local latch = {}

-- countDown token count ttl known latest
--   `known`: when the latch was born that the caller knows; "": none yet.
--   `latest`: until when it may be done, server ms. Who sent it has given up then, and the next latch of the key may be there.
-- Answers { 1, what is left, when it was born, ms until it ends, 1 if more are left to be told }
--         { 0 }: the latch that the caller knows is over; { 3 }: it came too late
function latch.countDown(token, count, ttl, known, latest)
  if now_ms > tonumber(latest) then
    return { 3 }
  elseif not load_or_create(count, ttl, known) then
    return { 0 }
  end
  local attempt = 'a' .. string.sub(token, 1, 32)
  if left > 1 and redis.call('HEXISTS', lock_key, attempt) == 0 then
    left = left - 1
    redis.call('HSET', lock_key, attempt, 1, 'left', left)
  elseif left == 1 and redis.call('HEXISTS', lock_key, attempt) == 0 then
    left = 0
    redis.call('UNLINK', lock_key) -- who has counted is of no use any more
    write()
  end
  return reply()
end

-- waitLatch token count ttl known latest kind
--   `kind` of our channel; n: we are not to be told, and only look.
-- Answers as countDown; { 2 }: too many wait
function latch.waitLatch(token, count, ttl, known, latest, kind)
  if now_ms > tonumber(latest) then
    return { 3 }
  elseif not load_or_create(count, ttl, known) then
    return { 0 }
  elseif left > 0 and kind ~= 'n' then
    local queue_entry = token .. ' ' .. kind
    redis.call('ZREMRANGEBYSCORE', queue, '-inf', now_ms)
    if redis.call('ZCARD', queue) >= queue_bound and not redis.call('ZSCORE', queue, queue_entry) then
      return { 2 }
    end
    redis.call('ZADD', queue, now_ms + expected_ms, queue_entry)
    redis.call('PEXPIREAT', queue, digits(ends))
  end
  return reply()
end

-- leaveLatchQueue token kind
-- Answers { 1 }
function latch.leaveLatchQueue(token, kind)
  redis.call('ZREM', queue, token .. ' ' .. kind)
  return { 1 }
end

-- inspect of a latch answers { "", ms until it ends, first, last, [], waiters, members, "latch", count, left }
function latch.inspect()
  load_state()
  local first, last = grant_numbers()
  redis.call('ZREMRANGEBYSCORE', queue, '-inf', now_ms)
  return {
    '',
    math.max(0, ends - now_ms),
    first and digits(first) or '',
    last and digits(last) or '',
    {},
    redis.call('ZCARD', queue),
    redis.call('ZRANGE', queue, 0, 99),
    'latch',
    total,
    left,
  }
end

-- Whatever a token had here is over: a latch has taken its place.

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
