-- Grants: to a token that is asking, or by message to the next in the queue.

-- Writes a grant of `want` numbers (ttl and want are digits). The server's time is the floor, so numbers rise even where the counter was lost.
local function put(token, ttl, want)
  local newest = redis.call('HGET', fence, 'last')
  local first = math.max((tonumber(newest) or 0) + 1, now)
  local last = first + want - 1
  redis.call('HSET', fence, 'first', digits(first), 'last', digits(last))
  redis.call('PEXPIRE', fence, ttl + retention_ms)
  redis.call('SET', K, token, 'PX', ttl)
  return first, last
end

-- A queue member is "<attempt>:<client>:<ticket> <ttl> <want> <deadline> <channel kind>", deadline in server ms, 0 = none.
local function parse(member)
  return string.match(member, '^(%x+:(%x+):%d+) (%d+) (%d+) (%d+) (%a)$')
end

local function publish(kind, client, message)
  return redis.pcall(kind == 's' and 'SPUBLISH' or 'PUBLISH', 'holdfast:grants:' .. client, message)
end

-- Offers K to one queue member. K is written before the message is sent: whoever hears of a grant has it.
-- A receivers' count of 0 means that the process is gone. A publish that fails leaves the member in its place.
local function offer(member, token, client, ttl, want, kind)
  local first, last = put(token, ttl, want)
  local message = table.concat({ 'grant', token, digits(first), digits(last), digits(now), ttl, run_id(), K }, ' ')
  local heard = publish(kind, client, message)
  if type(heard) == 'table' then
    redis.call('DEL', K)
    error(heard.err)
  end
  redis.call('ZREM', queue, member)
  if heard == 0 then
    redis.call('DEL', K)
  end
  return heard > 0
end

-- Hands K, which nobody holds or its holder gives up, to the first waiter that is alive.
-- Returns the new holder's token; `own`, not yet granted, if that member is first; nil if nobody waits (K is not touched);
-- false at the bound of dead waiters, with K absent: the caller repeats.
local function grant_next(own)
  for _ = 1, 16 do
    local member = redis.call('ZRANGE', queue, 0, 0)[1]
    if not member then
      return nil
    end
    if member == own then
      return own
    end
    local token, client, ttl, want, deadline, kind = parse(member)
    deadline = tonumber(deadline)
    if not token or (deadline > 0 and deadline * 1000 < now) then
      redis.call('ZREM', queue, member)
    elseif offer(member, token, client, ttl, want, kind) then
      return token
    end
  end
  redis.call('DEL', K)
  return false
end

-- K is given up: to the next, or absent. Returns true where the caller has to repeat.
local function let_go()
  if redis.call('EXISTS', queue) == 0 then
    redis.call('DEL', K, info)
    return false
  end
  local next_holder = grant_next()
  if next_holder == nil then
    redis.call('DEL', K, info)
  end
  return next_holder == false
end

-- K is absent, and this was found in passing: whoever waits is served.
local function serve_next()
  return redis.call('EXISTS', queue) == 1 and grant_next() == false
end
