-- acquire ..., release ... of the same lock: a process passes its mutex to its next caller, after those of other processes.
--   Without waiters the new token gets the lock in place of the old one.
--   Reply   { server time, reply of the acquire, 1 }
local value = redis.pcall('GETRANGE', lock_key, 0, 599)
local released = ARGV[11]
-- The two may be of the same request, which is repeated and then abandoned, or the first may be for another kind of lock.
local is_next = ARGV[3] ~= released and (string.byte(ARGV[3], 67) or 58) <= 57
local is_held = type(value) == 'string' and string.sub(value, 1, #released + 1) == released .. ' '
if is_next and is_held and ARGV[8] == '' and now <= ARGV[9] * 1000 and redis.pcall('EXISTS', queue) == 0 then
  local counter = redis.pcall('GET', KEYS[1]) or '0'
  if type(counter) == 'string' and string.find(counter, '^%d+$') and tonumber(counter) < now then
    local last = now + ARGV[6] - 1
    local grant = table.concat({ ARGV[3], string.format('%.0f', now), ARGV[6] }, ' ')
    local refused = redis.pcall('SET', KEYS[1], string.format('%.0f', last)).err
      or redis.pcall('SET', lock_key, grant, 'PX', ARGV[5]).err
    if not refused then
      if string.byte(value, -1) == 105 then
        redis.call('DEL', info)
      end
      return { now, last == now and now or { 1, now, last, ARGV[3] }, 1 }
    end
  end
end
