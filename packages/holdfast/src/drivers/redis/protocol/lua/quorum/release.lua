-- release token queue_args
--   Ends the token's grant, or removes its queue entry.
--   Reply   { 1 released or 0 no grant of the token, 1 if dead waiters remain: repeat, the present holder's token, "" if none or unknown }
--   Effects grants the lock to the next waiter
local function release(token, queue_args)
  if holder == token then
    return { 1, release_lock() and 1 or 0, '' }
  end
  dequeue(token, queue_args)
  if redis.call('HGET', info, 'token') == token then
    redis.call('DEL', info)
  end
  return { 0, grant_next_if_free() and 1 or 0, holder_text(holder) }
end

-- breakGrant number kind reason
--   Ends the grant with this fencing number for an operator, and notifies its holder.
--   kind   the kind of the holder's channel
--   Reply   { 1 broken or 0 the number is not the present grant's, 1 if dead waiters remain }
--   Effects records the break in info, and grants the lock to the next waiter
local function break_grant(number, kind, reason)
  local first, last = grant_numbers()
  local client = holder and string.match(holder, '^%x+:(%x+):%d+$')
  number = tonumber(number)
  if not client or not first or number < first or number > last then
    return { 0, 0 }
  end
  local remaining_ms = redis.call('PTTL', lock_key)
  publish(kind, client, 'broken ' .. cjson.encode({ holder, lock_key, reason }))
  local more = release_lock()
  write_info(holder, math.max(remaining_ms, 1000), cjson.encode({ 'broken', reason }))
  return { 1, more and 1 or 0 }
end
