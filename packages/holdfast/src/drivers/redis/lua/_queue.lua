-- The queue, and the grants to who stands there.

local queue_bound = tonumber(ARGV[2])
local popped -- a waiter that was taken from the queue and not served yet

-- The server's identity, asked for only where an answer or a message needs it.
local function run_id()
  if not known_run_id then
    local server = redis.call('INFO', 'server')
    local run = string.find(server, 'run_id:', 1, true) + 7
    known_run_id = string.sub(server, run, run + 39)
  end
  return known_run_id
end

-- Numbers of the newest grant: first, last; nil where the counter has expired.
local function numbers()
  local found = redis.call('HMGET', fence, 'first', 'last')
  return tonumber(found[1]), tonumber(found[2])
end

-- Raises K's TTL, never shortens it: an older, slower request must not cut a newer promise. The counter outlives K.
local function raise_ttl(ttl)
  local left = redis.call('PTTL', K)
  if left >= 0 and left < tonumber(ttl) then
    redis.call('PEXPIRE', K, ttl)
  end
  redis.call('PEXPIRE', fence, math.max(left, ttl) + retention_ms)
end

-- A token is "<attempt>:<client>:<ticket>": attempt and client are 32 digits each, so their places are known. To match all of it
-- is dearer than the commands of a hand-over.
local function ticket_of(token)
  return string.match(token, ':(%d+)$', 66)
end

local function client_of(token)
  return string.byte(token, 33) == 58 and ticket_of(token) and string.sub(token, 34, 65) or nil
end

-- A queue member is "<token> <ttl> <want> <deadline> <channel>", deadline in server ms, 0 = none.
-- The channel is p, plain, or s, sharded; in a cluster s and the hash tag that leads to K's slot.
local function parse(member)
  local token = string.sub(member, 1, (string.find(member, ' ', 67, true) or 0) - 1)
  local client = client_of(token)
  if client then
    return token, client, string.match(member, '^(%d+) (%d+) (%d+) (%a%w*)$', #token + 2)
  end
end

-- Of two waiters the one whose member stands first in the queue. Not by Lua's own comparison, which follows the locale.
local function precedes(token, other)
  local ticket, others = tonumber(ticket_of(token)), tonumber(ticket_of(other))
  if ticket ~= others then
    return ticket < others
  end
  for i = 1, 32 do
    local byte, others_byte = string.byte(token, i), string.byte(other, i)
    if byte ~= others_byte then
      return byte < others_byte
    end
  end
  return false
end

-- A resend keeps its place. Returns 1 for a new member, 0 for one that stood there.
local function enqueue(token, member)
  local added = redis.call('ZADD', queue, 'NX', ticket_of(token), member)
  redis.call('PEXPIRE', queue, 60000)
  return added
end

-- Leaves the queue. Of a quorum's node who adopted a grant, or joined an earlier attempt's, does not know what a place there says
-- beside the token: it is found by its ticket.
local function leave(token, terms)
  local ticket = terms == '' and is_quorum and ticket_of(token)
  if not ticket then
    redis.call('ZREM', queue, token .. ' ' .. terms)
    return
  end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', queue, ticket, ticket, 'LIMIT', 0, 16)) do
    if string.sub(member, 1, #token + 1) == token .. ' ' then
      redis.call('ZREM', queue, member)
    end
  end
end

local function publish(kind, client, message)
  if kind == 'p' then
    return redis.pcall('PUBLISH', 'holdfast:grants:' .. client, message)
  end
  local tag = kind == 's' and '' or '{' .. string.sub(kind, 2) .. '}'
  return redis.pcall('SPUBLISH', 'holdfast:grants:' .. tag .. client, message)
end

-- Offers K to a waiter. K is written before the message is sent: whoever hears of a grant has it.
-- A receivers' count of 0 means that the process is gone.
local function offer(token, client, ttl, want, kind)
  local first, last = put(token, ttl, want)
  local message = table.concat({ 'grant', token, digits(first), digits(last), digits(now), ttl, run_id(), K }, ' ')
  local heard = publish(kind, client, message)
  if type(heard) == 'table' then
    error(heard.err, 0)
  end
  if heard == 0 then
    redis.call('DEL', K)
  end
  return heard > 0
end

-- Of a token or a queue member: whether it shares K, which a mutex does not.
local function is_share(text)
  return string.find(text, '^:%a', 66) ~= nil
end

-- Hands K, which nobody holds or its holder gives up, to the first waiter that is alive. An error of the publish, or of any
-- other step, puts the member back: what one process may not do must not eat another's place.
-- Returns the new holder's token; `own`, taken from the queue and not yet granted, if that member is first; nil if nobody
-- waits (K is not touched); false at the bound of dead waiters, with K absent: the caller repeats.
local function grant_next(own)
  for _ = 1, 16 do
    local first = popped or redis.call('ZPOPMIN', queue)
    popped = nil
    local member = first[1]
    if not member or member == own then
      return member
    end
    if is_share(member) then
      redis.call('ZADD', queue, first[2], member)
      redis.call('DEL', K)
      error('KINDMISMATCH another kind', 0)
    end
    local token, client, ttl, want, deadline, kind = parse(member)
    deadline = tonumber(deadline)
    if deadline and (deadline == 0 or deadline * 1000 >= now) then
      local ok, is_taken = pcall(offer, token, client, ttl, want, kind)
      if not ok then
        redis.call('ZADD', queue, first[2], member)
        redis.call('PEXPIRE', queue, 60000)
        redis.call('DEL', K)
        error(is_taken, 0)
      elseif is_taken then
        return token
      end
    end
  end
  redis.call('DEL', K)
  return false
end

-- K is given up: to the next, or absent. Returns true where the caller has to repeat.
local function let_go()
  local next_holder = grant_next()
  if next_holder == nil then
    redis.call('DEL', K, info)
  end
  return next_holder == false
end

-- K was found absent in passing: whoever waits is served. Returns true where the caller has to repeat.
local function serve_next()
  return not holder and redis.call('EXISTS', queue) == 1 and grant_next() == false
end
