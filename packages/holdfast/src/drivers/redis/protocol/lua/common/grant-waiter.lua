-- Grants a lock to a waiter of its queue.

-- Puts a waiter, { queue entry, score, the queue's former TTL in ms }, back to its position. The queue keeps its former TTL. Otherwise
-- a client without the right to publish could block the lock forever with its retries. If lock_key was held, the TTL starts anew.
local function put_back(waiter)
  redis.call('ZADD', queue, waiter[2], waiter[1])
  redis.call('PEXPIRE', queue, waiter[3] or 60000)
end

-- The client that releases lock_key and receives the reply of this operation. If the next holder belongs to the same client, the script
-- publishes nothing, because `handover_reply` becomes the reply.
local releasing_client, handover_reply

-- The TTL in a notification: "<ms>", or "<ms>+<delay in ms>" for a vote that counts only after a delay.
local function ttl_text(ttl, delay_ms)
  return delay_ms and ttl .. '+' .. delay_ms or ttl
end

-- Removes a grant whose notification no client received.
local function revoke_grant()
  redis.call('DEL', lock_key)
  if is_quorum then
    redis.call('HDEL', fence, 'by')
  end
end

-- lock_key is written before the notification is published, so every client that receives a grant holds the lock. A count of 0
-- receivers means that the waiter's process has ended.
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
  local first, last, delay_ms = write_grant(token, ttl, fence_count)
  local grant_numbers = digits(first) .. ' ' .. digits(last)
  local message = table.concat({ 'grant', token, grant_numbers, digits(now), ttl_text(ttl, delay_ms), run_id(), lock_key }, ' ')
  local receivers = publish(channel, client, message)
  if type(receivers) == 'table' then
    error(receivers.err, 0)
  elseif receivers == 0 then
    revoke_grant()
    return false
  end
  return token, ttl
end

-- Offers lock_key to a waiter that was removed from the queue. If the publish or another step fails, the waiter is put back and the
-- error is raised. Otherwise a missing right of one process would dequeue another process's waiter.
-- Returns the token that holds lock_key now, and its TTL; false if the waiter's process has ended or its deadline has passed.
local function grant_waiter(waiter)
  local ok, granted_token, ttl = pcall(try_grant, waiter[1])
  if not ok then
    put_back(waiter)
    revoke_grant()
    error(granted_token, 0)
  end
  return granted_token, ttl
end
