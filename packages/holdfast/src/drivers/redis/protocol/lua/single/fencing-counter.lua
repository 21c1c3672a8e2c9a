-- Fencing numbers of one server: one counter for all its locks.
--
-- Numbers are not below the server's time in microseconds, so they rise also where the counter was lost.

local function digits(number)
  return string.format('%.0f', number) -- Lua's tostring rounds at 14 digits
end

-- The last number given out, nil before the first grant of this call; and what the counter key says.
local newest, kept

local function read_counter()
  local text = redis.pcall('GET', KEYS[1]) or '0'
  if text.err then
    error(text.err .. ', at the counter ' .. KEYS[1], 0)
  end
  local number = string.find(text, '^%d+$') and tonumber(text)
  if not number or number > now + 86400000000 then
    error('COUNTER ' .. KEYS[1] .. ' has ' .. string.sub(text, 1, 40) .. ': expected digits, at most a day ahead of the time', 0)
  end
  return number
end

-- Writes the counter before the first grant of a call: where that fails, nothing was granted. Behind a write nothing more fails for want
-- of memory, so `keep_counter` at the end of the call does not.
-- While the counter is more than 10 ms ahead of the time a grant gets one number: numbers must not run far ahead of the clock.
local function next_fence(fence_count)
  local last = newest or read_counter()
  local first = math.max(last + 1, now)
  last = first > now + 10000 and first or first + fence_count - 1
  if not newest then
    redis.call('SET', KEYS[1], digits(last))
    kept = last
  end
  newest = last
  return first, last
end

local function keep_counter()
  if newest ~= kept then
    redis.call('SET', KEYS[1], digits(newest))
    kept = newest
  end
end
