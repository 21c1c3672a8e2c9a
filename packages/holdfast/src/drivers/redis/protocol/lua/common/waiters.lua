-- Reads tokens and queue entries, and publishes notifications to waiters.

-- Writes without effect. A server with full memory refuses commands that may need memory, for example SET and ZADD. It refuses no command
-- of a script that has written. So an operation on a present grant begins with a removal, PEXPIRE, or this.
local function permit_writes()
  redis.call('ZREM', queue, '')
end

-- The id of the server's run, read only if a reply or a notification needs it.
local function run_id()
  if not known_run_id then
    local server = redis.call('INFO', 'server')
    local run = string.find(server, 'run_id:', 1, true) + 7
    known_run_id = string.sub(server, run, run + 39)
  end
  return known_run_id
end

-- A token is "<random>:<client>:<ticket>". Random and client have 32 digits each, so their positions are known. To match the whole token
-- would cost more than the commands of a grant.
local function ticket_of(token)
  return string.match(token, ':(%d+)$', 66)
end

local function client_of(token)
  return string.byte(token, 33) == 58 and ticket_of(token) and string.sub(token, 34, 65) or nil
end

-- Splits a queue entry, "<token> <ttl> <fence_count> <deadline> <channel>". The deadline is in server ms, and 0 means none. On one server
-- the TTL for a grant by reply follows. The channel is p (plain) or s (sharded). In a cluster the hash tag of lock_key's slot follows s.
local function parse(queue_entry)
  local token = string.sub(queue_entry, 1, (string.find(queue_entry, ' ', 67, true) or 0) - 1)
  local client = client_of(token)
  if client then
    return token, client, string.match(queue_entry, '^(%d+) (%d+) (%d+) (%a%w*) ?(%d*)$', #token + 2)
  end
end

-- Returns the count of receivers, or an error. A server without SPUBLISH, for example after a downgrade, has no receivers.
local function publish(kind, client, message)
  if kind == 'p' then
    return redis.pcall('PUBLISH', 'holdfast:grants:' .. client, message)
  end
  local tag = kind == 's' and '' or '{' .. string.sub(kind, 2) .. '}'
  local receivers = redis.pcall('SPUBLISH', 'holdfast:grants:' .. tag .. client, message)
  local is_unknown = type(receivers) == 'table' and string.find(receivers.err, 'Unknown %a+ command')
  return is_unknown and 0 or receivers
end
