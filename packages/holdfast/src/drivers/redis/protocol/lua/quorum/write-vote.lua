-- Writes the vote for `token`: of `fence_count` numbers, `number` is the first, `last` the last (ttl and want are digits); `left`: in how many ms
-- it counts, nil: now. A holder that is remembered has to be looked at first: while there is one nothing is written.
-- `is_written`: all of it was written. Nothing else comes of an error where `call` is redis.pcall; redis.call raises it.
local kept = call('HMGET', fence, 'last', 'most', 'notBefore', 'alone', 'used', 'by')
local number = math.max((tonumber(kept[1]) or 0) + 1, (tonumber(kept[2]) or 0) + 1, floor)
local last = number + fence_count - 1
local left = math.max(tonumber(kept[3]) or 0, tonumber(kept[4]) or 0) - now_ms
left = left > 0 and left or nil
if ttl ~= known_ttl then
  known_ttl, fence_ttl_text, ending = ttl, digits(ttl + retention_ms), ' ' .. digits(now_ms + ttl)
end
local is_written = not kept.err
  and not kept[6]
  and (tonumber(kept[5]) or 0) == 0
  and tonumber(call('HSET', fence, 'first', digits(number), 'last', digits(last), 'by', token .. ending))
  and call('PEXPIRE', fence, fence_ttl_text) == 1
  and call('SET', lock_key, token, 'PX', ttl).ok
