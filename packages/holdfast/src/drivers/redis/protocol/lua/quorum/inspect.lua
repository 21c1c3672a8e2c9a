-- inspect
--   Reply   { holder's token or "", remaining TTL in ms, first and last number (as text, "" if unknown),
--             the holder's metadata [field, value, ...], number of waiters, the first 100 queue entries }
--   Effects none
local function inspect()
  local first, last = grant_numbers()
  local metadata = redis.call('HGETALL', info)
  if redis.call('HGET', info, 'token') ~= holder then
    metadata = {}
  end
  return {
    holder_text(holder),
    redis.call('PTTL', lock_key),
    first and digits(first) or '',
    last and digits(last) or '',
    metadata,
    redis.call('ZCARD', queue),
    redis.call('ZRANGE', queue, 0, 99),
  }
end
