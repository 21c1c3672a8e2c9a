-- Writes a grant to `token`: of `want` numbers, `number` is the first, `last` the last (ttl and want are digits).
-- `is_put`: all of it was written. Nothing else comes of an error where `call` is redis.pcall; redis.call raises it.
local newest = call('HGET', fence, 'last')
local number = math.max((tonumber(newest) or 0) + 1, floor)
local last = number + want - 1
if ttl ~= known_ttl then
  known_ttl, outlives = ttl, string.format(whole, ttl + retention_ms)
end
local is_put = type(newest) ~= 'table'
  and tonumber(call('HSET', fence, 'first', string.format(whole, number), 'last', string.format(whole, last)))
  and call('PEXPIRE', fence, outlives) == 1
  and call('SET', K, token, 'PX', ttl).ok
