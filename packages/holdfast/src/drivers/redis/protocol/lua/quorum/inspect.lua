-- inspect
-- Answers { holder's token or "", remaining TTL in ms, first and last number (as text, "" unknown),
--           the holder's own words [field, value, ...], number of waiters, the first 100 members }
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
