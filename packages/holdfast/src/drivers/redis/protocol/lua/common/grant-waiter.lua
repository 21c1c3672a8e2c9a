-- The offer of a lock to a waiter.

-- The waiter, { member, score, the queue's TTL before in ms }, stands in its place again. The queue does not last longer than before:
-- else a client that may not publish would keep the lock from all by its retries. Where K was held the TTL begins anew.
local function put_back(waiter)
  redis.call('ZADD', queue, waiter[2], waiter[1])
  redis.call('PEXPIRE', queue, waiter[3] or 60000)
end

-- The client that gives K up, where the answer of this operation reaches it: its own next request needs no message.
-- Then `given` is the answer.
local giver, given

-- The TTL as a message tells it: "<ms>", of a vote that does not count yet "<ms>+<in how many ms it does>".
local function lasting(ttl, left)
  return left and ttl .. '+' .. left or ttl
end

-- A grant that nobody heard of: nothing is remembered of it.
local function withdraw()
  redis.call('DEL', K)
  if is_quorum then
    redis.call('HDEL', fence, 'by')
  end
end

-- K is written before the message is sent: whoever hears of a grant has it. A receivers' count of 0 means that the process is gone.
local function try(member)
  local token, client, ttl, want, deadline, channel, whole_ttl = parse(member)
  deadline = tonumber(deadline)
  if not deadline or (deadline ~= 0 and deadline * 1000 < now) then
    return false
  end
  if client == giver then
    local first, last = put(token, whole_ttl, want)
    given = { 1, 0, token, first, last, tonumber(whole_ttl) }
    return token, whole_ttl
  end
  local first, last, left = put(token, ttl, want)
  local numbers = digits(first) .. ' ' .. digits(last)
  local message = table.concat({ 'grant', token, numbers, digits(now), lasting(ttl, left), run_id(), K }, ' ')
  local heard = publish(channel, client, message)
  if type(heard) == 'table' then
    error(heard.err, 0)
  elseif heard == 0 then
    withdraw()
    return false
  end
  return token, ttl
end

-- Offers K to a waiter that was taken from the queue. An error of the publish, or of any other step, puts it back
-- and is raised: what one process may not do must not eat another's place.
-- Returns the token that has K now, and its TTL; false where the waiter is gone, or its time is over.
local function offer(waiter)
  local ok, taken, ttl = pcall(try, waiter[1])
  if not ok then
    put_back(waiter)
    withdraw()
    error(taken, 0)
  end
  return taken, ttl
end
