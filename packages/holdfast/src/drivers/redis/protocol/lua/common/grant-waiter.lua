-- The offer of a lock to a waiter.

-- The waiter, { member, score, the queue's TTL before in ms }, stands in its place again. The queue does not last longer than before:
-- else a client that may not publish would keep the lock from all by its retries. Where lock_key was held the TTL begins anew.
local function put_back(waiter)
  redis.call('ZADD', queue, waiter[2], waiter[1])
  redis.call('PEXPIRE', queue, waiter[3] or 60000)
end

-- The client that gives lock_key up, where the answer of this operation reaches it: its own next request needs no message.
-- Then `handover_reply` is the answer.
local releasing_client, handover_reply

-- The TTL as a message tells it: "<ms>", of a vote that does not count yet "<ms>+<in how many ms it does>".
local function ttl_text(ttl, left)
  return left and ttl .. '+' .. left or ttl
end

-- A grant that nobody heard of: nothing is remembered of it.
local function revoke_grant()
  redis.call('DEL', lock_key)
  if is_quorum then
    redis.call('HDEL', fence, 'by')
  end
end

-- lock_key is written before the message is sent: whoever hears of a grant has it. A receivers' count of 0 means that the process is gone.
local function try_grant(queue_entry)
  local token, client, ttl, fence_count, deadline, channel, whole_ttl = parse(queue_entry)
  deadline = tonumber(deadline)
  if not deadline or (deadline ~= 0 and deadline * 1000 < now) then
    return false
  end
  if client == releasing_client then
    local first, last = write_grant(token, whole_ttl, fence_count)
    handover_reply = { 1, 0, token, first, last, tonumber(whole_ttl) }
    return token, whole_ttl
  end
  local first, last, left = write_grant(token, ttl, fence_count)
  local grant_numbers = digits(first) .. ' ' .. digits(last)
  local message = table.concat({ 'grant', token, grant_numbers, digits(now), ttl_text(ttl, left), run_id(), lock_key }, ' ')
  local receivers = publish(channel, client, message)
  if type(receivers) == 'table' then
    error(receivers.err, 0)
  elseif receivers == 0 then
    revoke_grant()
    return false
  end
  return token, ttl
end

-- Offers lock_key to a waiter that was taken from the queue. An error of the publish, or of any other step, puts it back
-- and is raised: what one process may not do must not eat another's place.
-- Returns the token that has lock_key now, and its TTL; false where the waiter is gone, or its time is over.
local function grant_waiter(waiter)
  local ok, granted_token, ttl = pcall(try_grant, waiter[1])
  if not ok then
    put_back(waiter)
    revoke_grant()
    error(granted_token, 0)
  end
  return granted_token, ttl
end
