-- What reads and tells waiters.

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

-- A queue member is "<token> <ttl> <want> <deadline> <channel>", deadline in server ms, 0 = none. On one server the TTL of a grant that
-- a reply tells follows.
-- The channel is p, plain, or s, sharded; in a cluster s and the hash tag that leads to lock_key's slot.
local function parse(queue_entry)
  local token = string.sub(queue_entry, 1, (string.find(queue_entry, ' ', 67, true) or 0) - 1)
  local client = client_of(token)
  if client then
    return token, client, string.match(queue_entry, '^(%d+) (%d+) (%d+) (%a%w*) ?(%d*)$', #token + 2)
  end
end

-- Answers the count of receivers, or an error. A server without the command, as after a downgrade, has no receivers.
local function publish(kind, client, message)
  if kind == 'p' then
    return redis.pcall('PUBLISH', 'holdfast:grants:' .. client, message)
  end
  local tag = kind == 's' and '' or '{' .. string.sub(kind, 2) .. '}'
  local receivers = redis.pcall('SPUBLISH', 'holdfast:grants:' .. tag .. client, message)
  local is_unknown = type(receivers) == 'table' and string.find(receivers.err, 'Unknown %a+ command')
  return is_unknown and 0 or receivers
end
