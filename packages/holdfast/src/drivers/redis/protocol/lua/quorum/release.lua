-- release token terms
--   Gives the grant back, or leaves the queue; so it is cancel as well.
-- Answers { 1 released or 0 it was not ours, 1 if dead waiters are left: repeat, the present holder's token, "" if nobody or not known }
local function release(token, terms)
  if holder == token then
    return { 1, let_go() and 1 or 0, '' }
  end
  leave(token, terms)
  if redis.call('HGET', info, 'token') == token then
    redis.call('DEL', info)
  end
  return { 0, serve_next() and 1 or 0, shown(holder) }
end

-- breakGrant number kind reason
--   An operator's force: ends the grant that the number belongs to, and tells its holder.
-- Answers { 1 broken or 0 that grant is not the present one, 1 if dead waiters are left }
local function break_grant(number, kind, reason)
  local first, last = numbers()
  local client = holder and string.match(holder, '^%x+:(%x+):%d+$')
  number = tonumber(number)
  if not client or not first or number < first or number > last then
    return { 0, 0 }
  end
  local left = redis.call('PTTL', K)
  publish(kind, client, 'broken ' .. cjson.encode({ holder, K, reason }))
  local more = let_go()
  write_info(holder, math.max(left, 1000), cjson.encode({ 'broken', reason }))
  return { 1, more and 1 or 0 }
end
