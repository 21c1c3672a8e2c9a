-- The queue of this library's waiters. Waiters of the other library have no place in the queue.

local function remove_entry(entry)
  redis.call('ZREM', queue, entry)
  redis.call('ZREM', seen, entry)
  redis.call('HDEL', notes, 'q:' .. entry)
end

-- Removes waiters that have not repeated their requests in time, and first waiters whose time was evicted.
local function remove_dead_entries()
  for _, entry in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', now, 'LIMIT', 0, 100)) do
    remove_entry(entry)
  end
  for _, entry in ipairs(redis.call('ZRANGE', queue, 0, 9)) do
    if redis.call('ZSCORE', seen, entry) then
      break
    end
    remove_entry(entry)
  end
end

-- Whether no other waiter is before this request. `ticket` is its earlier place, if its entry has expired.
local function is_first(ticket)
  local first = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  return not first[1] or first[1] == token or ticket ~= '' and tonumber(ticket) < tonumber(first[2])
end

-- Returns the ticket of the request's entry, or nil if the queue is full.
local function enter(ticket, entry_ttl, owner, bound)
  local place = redis.call('ZSCORE', queue, token)
  if not place then
    if redis.call('ZCARD', queue) >= tonumber(bound) then
      return nil
    end
    local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')
    place = ticket ~= '' and ticket or digits(math.max(now_micros, (tonumber(last[2]) or 0) + 1))
    redis.call('ZADD', queue, place, token)
    redis.call('HSET', notes, 'q:' .. token, owner)
  end
  keep(queue, entry_ttl + 1000)
  redis.call('ZADD', seen, now + entry_ttl, token)
  keep(seen, entry_ttl + 1000)
  keep(notes, entry_ttl + 1000)
  return digits(tonumber(place))
end
