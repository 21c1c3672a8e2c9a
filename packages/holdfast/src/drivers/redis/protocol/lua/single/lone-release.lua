-- release token is_own
--   As release, of a mutex without a queue entry.
--   Reply   the server's time: released, without a next holder; or the replies of the general form
now = read_time()
local value = redis.pcall('GETRANGE', lock_key, 0, 599)
local token = ARGV[2]
if type(value) == 'string' and string.sub(value, 1, #token + 1) == token .. ' ' and redis.pcall('EXISTS', queue) == 0 then
  local is_marked = string.byte(value, -1) == 105
  local removed = is_marked and redis.pcall('DEL', lock_key, KEYS[4]) or redis.pcall('DEL', lock_key)
  if type(removed) == 'number' then
    return now
  end
end
operations = { 'release', token, '', ARGV[3] }
