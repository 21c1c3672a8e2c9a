-- The offer of a lock to a waiter, and what reads and tells waiters.

-- The server's identity, asked for only where an answer or a message needs it.
local function run_id()
  if not known_run_id then
    local server = redis.call('INFO', 'server')
    local run = string.find(server, 'run_id:', 1, true) + 7
    known_run_id = string.sub(server, run, run + 39)
  end
  return known_run_id
end

-- A token is "<random>:<client>:<ticket>": random and client are 32 digits each, so their places are known. To match all of it
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

-- Answers the count of receivers, or an error. A server without the command, as after a downgrade, has no receivers.
local function publish(kind, client, message)
  if kind == 'p' then
    return redis.pcall('PUBLISH', 'holdfast:grants:' .. client, message)
  end
  local tag = kind == 's' and '' or '{' .. string.sub(kind, 2) .. '}'
  local heard = redis.pcall('SPUBLISH', 'holdfast:grants:' .. tag .. client, message)
  local is_unknown = type(heard) == 'table' and string.find(heard.err, 'Unknown %a+ command')
  return is_unknown and 0 or heard
end

-- The waiter, { member, score, the queue's TTL before in ms }, stands in its place again. The queue does not last longer than before:
-- else a client that may not publish would keep the lock from all by its retries. Where K was held the TTL begins anew.
local function put_back(waiter, queue)
  redis.call('ZADD', queue, waiter[2], waiter[1])
  redis.call('PEXPIRE', queue, waiter[3] or 60000)
end

-- K is written before the message is sent: whoever hears of a grant has it. A receivers' count of 0 means that the process is gone.
local function try(member, K, fence, floor)
  local token, client, ttl, want, deadline, channel = parse(member)
  deadline = tonumber(deadline)
  if not deadline or (deadline ~= 0 and deadline * 1000 < now) then
    return false
  end
  local first, last = write_grant(token, ttl, want, K, fence, floor)
  local numbers = string.format(whole, first) .. ' ' .. string.format(whole, last)
  local message = table.concat({ 'grant', token, numbers, string.format(whole, now), ttl, run_id(), K }, ' ')
  local heard = publish(channel, client, message)
  if type(heard) == 'table' then
    error(heard.err, 0)
  elseif heard == 0 then
    redis.call('DEL', K)
    return false
  end
  return token, ttl
end

-- Offers K to a waiter that was taken from the queue. An error of the publish, or of any other step, puts it back
-- and is raised: what one process may not do must not eat another's place.
-- Returns the token that has K now, and its TTL; false where the waiter is gone, or its time is over.
local function offer(waiter, K, queue, fence, floor)
  local ok, taken, ttl = pcall(try, waiter[1], K, fence, floor)
  if not ok then
    put_back(waiter, queue)
    redis.call('DEL', K)
    error(taken, 0)
  end
  return taken, ttl
end
