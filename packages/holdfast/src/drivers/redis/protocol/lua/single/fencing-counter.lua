-- The fencing numbers of one server, from one counter for all its locks.
--
-- A number is at least the server's time in microseconds, so numbers rise even after the loss of the counter.

-- Lua's tostring rounds at 14 digits.
local function digits(number)
  return string.format('%.0f', number)
end

-- The last number of the call's grants, nil before the first grant; and the last number that the call wrote to the counter.
local newest, stored

-- A counter far ahead of the time is damaged, or was written while the server's clock was ahead. An operator accepts such a counter by a
-- leading 0, which the scripts keep until the time has come near the counter. Above 9 * 10^15 too few exact numbers would be left.
local latest = now + 86400000000
local lead = ''

local function read_counter()
  local text = redis.pcall('GET', KEYS[1]) or '0'
  if text.err then
    error(text.err .. ', at the counter ' .. KEYS[1], 0)
  end
  local number = string.find(text, '^%d+$') and tonumber(text)
  if not number or number > latest and (string.byte(text) ~= 48 or number > 9e15) then
    local found = 'COUNTER ' .. KEYS[1] .. ' has ' .. string.sub(text, 1, 40)
    error(found .. ': expected digits, at most a day ahead of the time. `holdfast doctor` shows the ways out', 0)
  end
  lead = number > latest and '0' or ''
  return number
end

-- Returns the first and the last number of a new grant. The first grant of a call writes the counter before anything else, so a failed
-- write grants nothing. After a successful write Redis rejects no later write of the script for lack of memory. Therefore `keep_counter`
-- at the end of the call does not fail.
-- If the counter is more than 10 ms ahead of the time, a grant gets one number, because numbers must stay near the clock.
local function next_fence(fence_count)
  local last = newest or read_counter()
  local first = math.max(last + 1, now)
  last = first > now + 10000 and first or first + fence_count - 1
  if not newest then
    redis.call('SET', KEYS[1], lead .. digits(last))
    stored = last
  end
  newest = last
  return first, last
end

-- Writes the counter at the end of a call.
local function keep_counter()
  if newest ~= stored then
    redis.call('SET', KEYS[1], lead .. digits(newest))
    stored = newest
  end
end
