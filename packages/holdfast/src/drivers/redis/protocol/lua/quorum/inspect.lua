-- inspect
-- Answers { holder's token or "", remaining TTL in ms, first and last number (as text, "" unknown),
--           the holder's own words [field, value, ...], number of waiters, the first 100 members }
local function inspect()
  local first, last = numbers()
  local words = redis.call('HGETALL', info)
  if redis.call('HGET', info, 'token') ~= holder then
    words = {}
  end
  return {
    shown(holder),
    redis.call('PTTL', K),
    first and digits(first) or '',
    last and digits(last) or '',
    words,
    redis.call('ZCARD', queue),
    redis.call('ZRANGE', queue, 0, 99),
  }
end
