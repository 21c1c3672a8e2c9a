-- The fencing number of a new grant, from one counter for all locks of the server. A number is at least the server's time in
-- microseconds, so numbers rise even after the loss of the counter. Returns nil and an error for an invalid counter.
local function next_fence()
  local text = redis.call('GET', counter) or '0'
  local last = string.find(text, '^%d+$') and tonumber(text)
  local is_far = last and last > now_micros + 86400000000
  -- A leading 0 states that an operator has accepted a counter that is far ahead.
  if not last or is_far and (string.byte(text) ~= 48 or last > 9e15) then
    local found = 'COUNTER ' .. counter .. ' has ' .. string.sub(text, 1, 40)
    return nil, found .. ': expected digits, at most a day ahead of the time. `holdfast doctor` shows the ways out'
  end
  local number = digits(math.max(last + 1, now_micros))
  redis.call('SET', counter, is_far and '0' .. number or number)
  return number
end
