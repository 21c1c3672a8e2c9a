-- Writes the guard of a semaphore, or extends it. A key with other data stays as it is.
--   KEYS[1]   `semaphore:<key>`, where redis-semaphore stores the permits in a sorted set
--   ARGV[1]   the value of the guard
--   ARGV[2]   the TTL of the guard, ms
--   Reply     the type of the other data, or 'none' if the guard is written
local present = redis.call('TYPE', KEYS[1]).ok
if present == 'none' or present == 'string' and redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 'none'
end
return present
