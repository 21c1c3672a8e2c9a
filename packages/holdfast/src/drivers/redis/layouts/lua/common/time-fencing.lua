-- The fencing number of a new grant, from one counter for all locks of the server. A number is at least the server's time in
-- microseconds, so numbers rise even after the loss of the counter. Returns nil and an error for an invalid counter.
local function next_fence()
  local text = redis.call('GET', counter) or '0'
  local last = string.find(text, '^%d+$') and tonumber(text)
  if not last or last > now_micros + 86400000000 then
    return nil, 'COUNTER ' .. counter .. ' has ' .. string.sub(text, 1, 40) .. ': expected digits, at most a day ahead of the time'
  end
  local number = digits(math.max(last + 1, now_micros))
  redis.call('SET', counter, number)
  return number
end
