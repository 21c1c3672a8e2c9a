-- release token queue_args
--   Gives the grant back, or leaves the queue; so it is cancel as well.
-- Answers { 1 released or 0 it was not ours, 1 if dead waiters are left: repeat, the present holder's token, "" if nobody or not known }
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
--   An operator's force: ends the grant that the number belongs to, and tells its holder.
-- Answers { 1 broken or 0 that grant is not the present one, 1 if dead waiters are left }
local function break_grant(number, kind, reason)
  local first, last = grant_numbers()
  local client = holder and string.match(holder, '^%x+:(%x+):%d+$')
  number = tonumber(number)
  if not client or not first or number < first or number > last then
    return { 0, 0 }
  end
  local left = redis.call('PTTL', lock_key)
  publish(kind, client, 'broken ' .. cjson.encode({ holder, lock_key, reason }))
  local more = release_lock()
  write_info(holder, math.max(left, 1000), cjson.encode({ 'broken', reason }))
  return { 1, more and 1 or 0 }
end
