-- Writes the vote for `token`, with `fence_count` numbers. `ttl` and `fence_count` are digits.
--   number, last   the first and the last number
--   left           the delay in ms after which the vote counts; nil: at once
--   is_written     whether everything was written
-- While the fence remembers a holder, nothing is written, because that holder must be restored first. If `call` is redis.pcall, an error
-- only makes `is_written` false. If `call` is redis.call, the error is raised.
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
