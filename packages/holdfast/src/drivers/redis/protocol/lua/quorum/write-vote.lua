-- Writes the vote for `token`, with `fence_count` numbers. `ttl` and `fence_count` are digits.
--   number, last   the first and the last number
--   delay_ms       the delay in ms after which the vote counts; nil: at once
--   is_written     whether everything was written
-- While the fence remembers a holder, nothing is written, because that holder must be restored first. If `call` is redis.pcall, an error
-- only makes `is_written` false. If `call` is redis.call, the error is raised.
local stored = call('HMGET', fence, 'last', 'most', 'notBefore', 'alone', 'used', 'by')
local number = math.max((tonumber(stored[1]) or 0) + 1, (tonumber(stored[2]) or 0) + 1, floor)
local last = number + fence_count - 1
local delay_ms = math.max(tonumber(stored[3]) or 0, tonumber(stored[4]) or 0) - now_ms
delay_ms = delay_ms > 0 and delay_ms or nil
if ttl ~= known_ttl then
  known_ttl, fence_ttl_text, expiry_text = ttl, digits(ttl + retention_ms), ' ' .. digits(now_ms + ttl)
end
local is_written = not stored.err
  and not stored[6]
  and (tonumber(stored[5]) or 0) == 0
  and tonumber(call('HSET', fence, 'first', digits(number), 'last', digits(last), 'by', token .. expiry_text))
  and call('PEXPIRE', fence, fence_ttl_text) == 1
  and call('SET', lock_key, token, 'PX', ttl).ok
