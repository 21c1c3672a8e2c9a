-- Reads a lock that another library holds in a layout of its own.
--
--   KEYS[1]  lock_key
--   Reply    { "free" }, { "unknown" } or { library, holder, remaining TTL in ms, -1: none }
--   Effects  none

local lock_key = KEYS[1]
local kind = redis.call('TYPE', lock_key).ok
if kind == 'none' then
  return { 'free' }
elseif kind ~= 'hash' then
  return { 'unknown' }
end
-- Redisson stores a mutex, a fair lock and a read-write lock as a hash with a field `<uuid>:<thread>` for each holder.
local fields = redis.call('HSCAN', lock_key, 0, 'COUNT', 10)[2]
for i = 1, #fields, 2 do
  if string.find(fields[i], '^%x+%-%x+%-%x+%-%x+%-%x+:%d+') then
    return { 'redisson', fields[i], redis.call('PTTL', lock_key) }
  end
end
return { 'unknown' }
